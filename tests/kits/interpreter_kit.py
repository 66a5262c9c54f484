"""Triton's interpreter with less work for each call and operation; the results are the same."""

import inspect
from functools import cache


def speed_up(patch):
    """Patch the interpreter, for kernels with many small operations."""
    _patch_calls(patch)
    _patch_types(patch)


def _patch_calls(patch):
    """List the functions of the language once, and replace them once for each kernel.

    The interpreter replaces them for each call of a kernel and of a function of a kernel, and finds
    them by reading all members of its modules and classes.
    """
    from triton import language as tl
    from triton.runtime import interpreter

    is_builtin = tl.core.is_builtin
    names = {
        package: [name for name, _ in inspect.getmembers(package, is_builtin)]
        for package in (tl, tl.core, tl.math, tl.tensor, tl.core.tensor_descriptor_base)
    }

    def patch_builtin(package, builder, scope):
        for name in names[package]:
            member = getattr(package, name)
            if is_builtin(member):  # else it is already replaced
                interpreter._patch_attr(package, name, member, builder, scope)

    patch_language = interpreter._patch_lang

    @cache
    def languages(function):
        values = function.__globals__.values()
        return [value for value in values if value is tl or value is tl.core]

    def patch_once(function):
        if any(is_builtin(language.arange) for language in languages(function)):
            return patch_language(function)
        return interpreter._LangPatchScope()

    patch.setattr(interpreter, "_patch_builtin", patch_builtin)
    patch.setattr(interpreter, "_patch_lang", patch_once)


def _patch_types(patch):
    """Compute what depends on the type or the shape of a tensor once for each of them."""
    from triton import language as tl
    from triton.runtime import interpreter

    find_numpy_dtype = interpreter._get_np_dtype
    scalar_dtype = cache(find_numpy_dtype)

    def get_numpy_dtype(dtype):
        element = dtype.element_ty if isinstance(dtype, tl.block_type) else dtype
        return (find_numpy_dtype if element.is_ptr() else scalar_dtype)(element)

    constexpr, unwrap = tl.constexpr, tl.core._unwrap_if_constexpr
    init_block_type, init_tensor = tl.block_type.__init__, tl.tensor.__init__
    known = {}

    def block_type(self, element_ty, shape):
        sizes = tuple([size.value if type(size) is constexpr else size for size in shape])
        if sizes in known:
            self.element_ty = element_ty
            self.shape, self.numel, text = known[sizes]
            self.name = f"<{text}, {element_ty}>"
        else:
            init_block_type(self, element_ty, shape)
            known[sizes] = self.shape, self.numel, str(self.shape)

    def tensor(self, handle, type):
        if "_of_tensors" in vars(type):
            vars(self).update(type._of_tensors, handle=handle)
        else:
            init_tensor(self, handle, type)
            type._of_tensors = {key: each for key, each in vars(self).items() if key != "handle"}

    def unwrap_constexpr(value):
        kind = type(value)
        if kind is constexpr:
            return value.value
        return value if kind is tl.tensor or kind is int else unwrap(value)

    patch.setattr(interpreter, "_get_np_dtype", get_numpy_dtype)
    patch.setattr(tl.block_type, "__init__", block_type)
    patch.setattr(tl.tensor, "__init__", tensor)
    patch.setattr(tl.core, "_unwrap_if_constexpr", unwrap_constexpr)
