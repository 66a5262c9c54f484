"""Triton's interpreter with less work for each call; the results are the same."""

import inspect
from functools import cache


def speed_up(patch):
    """Patch the interpreter: it lists the language's functions once, and each NumPy dtype once.

    The interpreter replaces the functions of the language for each call of a kernel and of a
    function of a kernel, and finds them by reading all members of its modules and classes.
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

    find_numpy_dtype = interpreter._get_np_dtype
    scalar_dtype = cache(find_numpy_dtype)

    def get_numpy_dtype(dtype):
        element = dtype.element_ty if isinstance(dtype, tl.block_type) else dtype
        return (find_numpy_dtype if element.is_ptr() else scalar_dtype)(element)

    patch.setattr(interpreter, "_patch_builtin", patch_builtin)
    patch.setattr(interpreter, "_get_np_dtype", get_numpy_dtype)
