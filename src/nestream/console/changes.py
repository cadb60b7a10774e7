"""What pages change: drafts, the rules of the job, and annotations. Each request is checked here.

Nothing is overwritten unseen: a page names the state that it knows, and gets the current one back if that has
changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from nestream.console.annotations import LONGEST_COMMENT, STATUSES
from nestream.console.drafts import DraftError
from nestream.console.requests import Asked, AskedError, named, query_text
from nestream.console.rules import ChangedError, JobRules
from nestream.job import RulesError, RuleSet, check_name


class Changes:
    """The answers to requests that change something."""

    def __init__(self, asked: Asked) -> None:
        self._asked, self._watch = asked, asked.watch
        self._one = asyncio.Lock()
        """Changes of the rules are made one after the other."""

    # -- drafts --------------------------------------------------------------------------------------------

    async def save_draft(self, body: dict[str, Any]) -> dict[str, Any]:
        """Keep a query beside the job."""
        name, title, base = _rule_name(body), named(body, "title", ""), body.get("base")
        if base is not None and not isinstance(base, str):
            raise AskedError("The base must be text.")
        try:
            draft = await asyncio.to_thread(
                self._watch.drafts.save, name, query_text(body), title, _number(body, "revision"), base
            )
        except DraftError as error:
            return _refused(error)
        self._told()
        return {"ok": True, "draft": draft.json()}

    async def discard_draft(self, body: dict[str, Any]) -> dict[str, Any]:
        """Remove a draft."""
        try:
            revision = _number(body, "revision")
            await asyncio.to_thread(self._watch.drafts.discard, _rule_name(body), revision)
        except DraftError as error:
            return _refused(error)
        self._told()
        return {"ok": True}

    def _told(self) -> None:
        """Inform all pages of the current job."""
        self._watch.hub.publish("update", {"job": self._watch.described()})

    # -- rules ---------------------------------------------------------------------------------------------

    async def deploy(self, body: dict[str, Any]) -> dict[str, Any]:
        """Make a query the rule that the job runs."""
        name, text, before = _rule_name(body), query_text(body), body.get("before")
        revision = _number(body, "revision") if "revision" in body else None
        if before is not None and not isinstance(before, str):
            raise AskedError("The text before must be text.")
        text = text if text.endswith("\n") else f"{text}\n"
        rules = self._live_rules()

        async with self._one:
            known = rules.texts()
            others = {other: held for other, held in known.items() if other != name}
            checked = await self._asked.pool.ask("rules", texts={**others, name: text}, changes={name: text})
            if not checked["ok"]:
                return checked
            answer = await self._changed(rules.deploy, name, text, before, others)
        if answer["ok"]:
            await self._asked.stop_trial({"name": name})
            with suppress(DraftError):  # one that was saved since then stays
                await asyncio.to_thread(self._watch.drafts.discard, name, revision)
            self._told()
        return answer

    async def version(self, body: dict[str, Any]) -> dict[str, Any]:
        """The rules of a version, and how they differ from the current ones."""
        rules = self._live_rules()
        try:
            there = await asyncio.to_thread(rules.at, _number(body, "version"))
        except (RulesError, OSError) as error:
            return {"ok": False, "error": str(error)}
        now = RuleSet().changed(rules.texts())
        changed = {
            name: {"now": now.texts.get(name), "then": text}
            for name, text in now.differences(there.texts).items()
        }
        return {"ok": True, "changes": changed}

    async def roll_back(self, body: dict[str, Any]) -> dict[str, Any]:
        """Bring back the rules of a version, as a new version."""
        rules, version = self._live_rules(), _number(body, "version")
        async with self._one:
            try:
                there = await asyncio.to_thread(rules.at, version)
            except (RulesError, OSError) as error:
                return {"ok": False, "error": str(error)}
            changes = RuleSet().changed(rules.texts()).differences(there.texts)
            checked = await self._asked.pool.ask("rules", texts=there.texts, changes=changes)
            if not checked["ok"]:
                return checked
            return await self._changed(rules.roll_back, version, there.texts, _number(body, "newest"))

    async def _changed(self, change: Any, *given: Any) -> dict[str, Any]:
        """Make a change of the rules; return the outcome."""
        try:
            made: RuleSet = await asyncio.to_thread(change, *given)
        except ChangedError as error:
            there = {"text": error.text, "version": error.version}
            return {"ok": False, "error": str(error), "conflict": there}
        except RulesError as error:
            return {"ok": False, "error": str(error)}
        except OSError as error:
            return {"ok": False, "error": f"The rules cannot be written: {error.strerror or error}."}
        await self._watch.look_aside_now()
        return {"ok": True, "version": made.version}

    def _live_rules(self) -> JobRules:
        rules = self._watch.rules
        if rules.refusal is not None:
            raise AskedError(rules.refusal)
        return rules

    # -- matches -------------------------------------------------------------------------------------------

    async def annotate(self, body: dict[str, Any]) -> dict[str, Any]:
        """Acknowledge a match, mark it as a false alarm, undo that, or comment on it."""
        said: dict[str, str | None] = {}
        if "status" in body:
            if body["status"] is not None and body["status"] not in STATUSES:
                raise AskedError(f"The status must be {' or '.join(STATUSES)}.")
            said["status"] = body["status"]
        if "comment" in body:
            comment = body["comment"]
            if not isinstance(comment, str) or not comment.strip() or len(comment) > LONGEST_COMMENT:
                raise AskedError(f"A comment is text of at most {LONGEST_COMMENT:,} characters.")
            said["comment"] = comment.strip()
        if not said or self._watch.job is None:
            raise AskedError("Name a status, or write a comment.")
        match = await self._watch.readers.run(self._watch.find_match, named(body, "id", ""))
        if match is None:
            return {"ok": False, "error": "There is no match with this address in the sink of the job."}
        try:
            await asyncio.to_thread(self._watch.annotations.add, match, **said)
        except OSError as error:
            return {"ok": False, "error": f"It cannot be kept: {error.strerror}."}
        found = await asyncio.to_thread(self._watch.annotations.look)
        if found:
            self._watch.hub.publish("update", {"annotations": found})
        return {"ok": True, "annotations": self._watch.annotations.among([match])}


def _refused(error: DraftError) -> dict[str, Any]:
    there: Mapping[str, Any] | None = None if error.there is None else error.there.json()
    return {"ok": False, "error": str(error), "conflict": there}


def _rule_name(body: dict[str, Any]) -> str:
    name = named(body, "name", "")
    try:
        check_name(name)
    except RulesError as error:
        raise AskedError(f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
    return name


def _number(body: dict[str, Any], key: str) -> int:
    value = body.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise AskedError(f"The {key} must be a number.")
    return value
