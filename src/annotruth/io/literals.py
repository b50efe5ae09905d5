"""Values of a Python file, read without executing it."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from annotruth.errors import InputError, describe_exhaustion

_BYTES_PER_SYMBOL = 200  # what a syntax tree takes for each byte of source code


class NotLiteral(NamedTuple):
    r"""An expression that would have to be executed to know its value.

    Attributes
    ----------
    line
        Its line in the file.
    code
        The expression as it is written.

    Examples
    --------
    >>> from annotruth.io.literals import read_literals
    >>> read_literals("name = 'park'\npath = name + '.yuv'")["path"]
    NotLiteral(line=2, code="name + '.yuv'")
    """

    line: int
    code: str


def read_literals(source: str) -> dict[str, Any]:
    """Return the values of all variables that a Python file assigns.

    Values are numbers, text, None, lists, dictionaries, and variables assigned before; tuples are
    lists. Any other expression is a `NotLiteral`. Imports are skipped, and any other statement is
    refused, as it could change the variables.
    """
    variables: dict[str, Any] = {}
    for statement in _parse(source).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                variables[name] = _evaluate(value, variables)
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                continue
            case _:
                raise InputError(
                    f"line {statement.lineno} is not an assignment of a value, and Python files are "
                    "not executed: write the values themselves, or the data as JSON"
                )
    return variables


def check_literal(value: Any, what: str) -> Any:
    """Return a value; refuse one that would have to be computed."""
    if isinstance(value, NotLiteral):
        raise InputError(
            f"{what} is computed on line {value.line} ({value.code}), and Python files are not "
            "executed: write the value itself, or the data as JSON"
        )
    return value


def tree_size(n_bytes: int) -> int:
    """Return how much memory the syntax tree of a file of this size takes at most."""
    return _BYTES_PER_SYMBOL * n_bytes


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise InputError(
            f"line {error.lineno} is not Python ({error.msg}): correct it, or write the data as JSON"
        ) from error
    except ValueError as error:
        raise InputError(f"the file is not Python ({error}): write the data as JSON") from error
    except (MemoryError, RecursionError) as error:  # both where expressions are nested deeply
        raise InputError(describe_exhaustion(RecursionError())) from error


def _evaluate(node: ast.expr, variables: dict[str, Any]) -> Any:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Name(id=name) if name in variables:
            return variables[name]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_evaluate(element, variables) for element in elements]
        case ast.Dict(keys=keys, values=values) if None not in keys:
            names = [_evaluate_key(key, variables) for key in keys if key is not None]
            if not any(isinstance(name, NotLiteral | list | dict) for name in names):
                evaluated = (_evaluate(value, variables) for value in values)
                return dict(zip(names, evaluated, strict=True))
    return NotLiteral(node.lineno, ast.unparse(node)[:60])


def _evaluate_key(node: ast.expr, variables: dict[str, Any]) -> Any:
    """Return the key of a dictionary; of tuples of plain values, a tuple."""
    key = _evaluate(node, variables)
    is_plain = isinstance(key, list) and not any(
        isinstance(entry, NotLiteral | list | dict) for entry in key
    )
    return tuple(key) if is_plain and isinstance(node, ast.Tuple) else key
