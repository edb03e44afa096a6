"""The forms of the page have every field that requests have, with the bounds that its order declares."""

from typing import Any

import pytest

from muster.domain.doors import Door
from muster.domain.order import DeclaredField, FieldForm, choices_of, element_of, is_many, order_fields
from tests.api.server import Server
from tests.orders import FORMS

READ = """() => Object.fromEntries([...document.querySelectorAll("form.start [name]")].map((one) => [one.name, {
  min: one.min || null, max: one.max || null, longest: one.maxLength > 0 ? one.maxLength : null, step: one.step || null,
  options: one.tagName === "SELECT" ? [...one.options].map((option) => option.value).filter(Boolean) : null,
  checked: one.type === "checkbox" ? one.checked : null, label: one.labels[0]?.textContent,
}]))"""


@pytest.mark.parametrize(("form", "kind"), FORMS.items(), ids=FORMS)
def test_a_form_has_the_fields_of_the_order(look: Any, server: Server, form: str, kind: Any) -> None:
    page = look(server, f"start/{form}").page
    page.locator("form.start").wait_for()
    shown = page.evaluate(READ)
    fields = [one for one in order_fields(kind) if one.at(Door.REQUEST) and one.declared.form is not FieldForm.ID]
    assert len(shown) == len(fields)
    for one, seen in zip(fields, (shown[name] for name in named(fields, shown)), strict=True):
        assert wrong(one, seen) == [], (one.name, seen)


def named(fields: list[DeclaredField], shown: dict[str, Any]) -> list[str]:
    """Return the names of fields in the form, by which requests know them."""
    spelled = {name.replace("_", "").lower(): name for name in shown}
    return [spelled[(one.declared.alias or one.name).replace("_", "").lower()] for one in fields]


def wrong(one: DeclaredField, seen: dict[str, Any]) -> list[str]:
    """Return in what a control differs from what is declared."""
    kind, inner = element_of(one.kind)
    bounds, many = inner or one.declared, is_many(one.kind)
    told: dict[str, Any] = {}
    if kind in (int, float) and not many:
        told |= {
            name: None if bound is None else float(bound) for name, bound in (("min", bounds.min), ("max", bounds.max))
        }
    elif kind is str and not many and seen["options"] is None:
        told["longest"] = bounds.max_length
    elif kind is bool:
        told["checked"] = one.default
    elif choices_of(one.kind):
        told["options"] = list(choices_of(one.kind))
    return [name for name, value in told.items() if _read(name, seen[name]) != value]


def _read(name: str, shown: Any) -> Any:
    return _number(shown) if name in ("min", "max") else shown


def _number(bound: Any) -> float | None:
    return None if bound is None else float(bound)
