"""Triton's interpreter with less work for each call and operation; the results are the same."""

import inspect
from functools import cache


def speed_up(patch):
    """Patch the interpreter, for kernels with many small operations."""
    _patch_calls(patch)
    _patch_types(patch)
    _patch_operations(patch)


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
                patch_member(package, name, member, builder, scope)

    def patch_member(package, name, member, builder, scope):
        function = getattr(member, "__wrapped__", member)  # without the check of the argument

        def call(*arguments, **options):
            options["_semantic"] = interpreter.interpreter_semantic
            return function(*arguments, **options)

        scope.set_attr(package, name, call)

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
    plain = {tl.tensor, int, float, bool, tl.dtype, tl.block_type, tl.pointer_type}
    init_block_type, init_tensor = tl.block_type.__init__, tl.tensor.__init__
    known, shapes = {}, {}

    def block_type(self, element_ty, shape):
        sizes = tuple([size.value if type(size) is constexpr else size for size in shape])
        key = element_ty.name, getattr(element_ty, "address_space", None), sizes
        if key in known:
            vars(self).update(vars(known[key]))
        else:
            init_block_type(self, element_ty, shape)
            self.shape = shapes.setdefault(sizes, self.shape)
            known[key] = self

    def tensor(self, handle, type):
        if "_of_tensors" in vars(type):
            vars(self).update(type._of_tensors)
            self.handle = handle
        else:
            init_tensor(self, handle, type)
            type._of_tensors = {key: each for key, each in vars(self).items() if key != "handle"}

    def unwrap_constexpr(value):
        kind = type(value)
        if kind is constexpr:
            return value.value
        return value if kind in plain else unwrap(value)

    check_size = interpreter.TensorHandle.__post_init__
    max_sizes = {}

    def handle(self, data, dtype, attr=None):
        self.data, self.dtype, self.attr = data, dtype, {} if attr is None else attr
        if data.itemsize > max_sizes.get(dtype.name, 0):
            check_size(self)
            max_sizes[dtype.name] = data.itemsize

    patch.setattr(interpreter, "_get_np_dtype", get_numpy_dtype)
    patch.setattr(interpreter.TensorHandle, "__init__", handle)
    patch.setattr(tl.block_type, "__init__", block_type)
    patch.setattr(tl.tensor, "__init__", tensor)
    patch.setattr(tl.core, "_unwrap_if_constexpr", unwrap_constexpr)


def _patch_operations(patch):
    """Skip the steps of an operation that have no effect."""
    from triton import language as tl
    from triton.language.semantic import TritonSemantic

    integers = frozenset(tl.dtype.SINT_TYPES + tl.dtype.UINT_TYPES)
    broadcast, cast = TritonSemantic.broadcast_impl_value, TritonSemantic.cast
    find_type = TritonSemantic.computation_type_impl
    assert_no_overflow = TritonSemantic.binary_op_sanitize_overflow_impl
    found = {}

    def computation_type(self, a, a_is_scalar, b, b_is_scalar, div_or_mod):
        key = a.name, a_is_scalar, b.name, b_is_scalar, div_or_mod
        if key not in found:
            found[key] = find_type(self, a, a_is_scalar, b, b_is_scalar, div_or_mod)
        return found[key]

    def broadcast_values(self, left, right):
        if getattr(left.type, "shape", ()) is getattr(right.type, "shape", ()):
            return left, right  # equal shapes of block types are one object
        return broadcast(self, left, right)

    def cast_unequal(self, value, dtype, fp_downcast_rounding=None):
        if value.dtype is dtype:
            return value
        return cast(self, value, dtype, fp_downcast_rounding)

    def check_overflow(self, left, right, operation):
        if self.builder.options.debug:  # else the result of the check is not used
            assert_no_overflow(self, left, right, operation)

    patch.setattr(tl.dtype, "is_int", lambda self: self.name in integers)
    patch.setattr(TritonSemantic, "computation_type_impl", computation_type)
    patch.setattr(TritonSemantic, "broadcast_impl_value", broadcast_values)
    patch.setattr(TritonSemantic, "cast", cast_unequal)
    patch.setattr(TritonSemantic, "binary_op_sanitize_overflow_impl", check_overflow)
