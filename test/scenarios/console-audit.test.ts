import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { readStatus } from "../../src/operations/status/status-report.ts"
import { parse } from "../cli/command-line.ts"
import { run } from "../cli/in-process.ts"
import { start } from "../cli/running.ts"
import type { Installation } from "../kit/engine.ts"
import {
  endpoint,
  erasableHistory,
  eventually,
  history,
  nth,
  publishMany,
  worker
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const whereOf = ({ eventRoot, prefix, url }: Installation) =>
  ["--nats", url, "--prefix", prefix, "--events", eventRoot] as const

/** Starts `petrel console`, with its files in a directory of its own. */
const startConsole = Effect.fnUntraced(function* (
  place: Installation,
  ...options: ReadonlyArray<string>
) {
  const data = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-console-"))),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )
  const command = yield* start(
    ...["console", "--listen", "127.0.0.1:0", "--data", data],
    ...options,
    ...whereOf(place)
  )
  yield* command.until((out) => out.length > 0)
  return command
})

/** Delivers three events, and removes the fact of the second delivery, as only an admin can. */
const loseOne = Effect.gen(function* () {
  const { deleteMessage, names, readMessage } = yield* Broker
  yield* erasableHistory
  const hook = yield* receiver()
  yield* endpoint({ url: hook.url })
  const facts = yield* history
  yield* worker({ alertEvery: 100 })
  yield* publishMany(3)
  yield* facts.count("delivered", 3)
  const last = yield* readMessage("look", names.history, {
    last_by_subj: names.subjects.fact("acme", "hook", "ok", "delivered")
  })
  yield* deleteMessage("remove", names.history, last?.seq ?? 0)
  return facts
})

describe.concurrent("a console", () => {
  scenario("audits by itself: what is lost is an alert, a problem and a metric", (place) =>
    Effect.gen(function* () {
      const facts = yield* loseOne
      const command = yield* startConsole(place)
      yield* facts.count("missing", 1)
      yield* command.until((_, err) =>
        err.some((line) => line.includes("the audit has found something missing"))
      )
      const address = /http:\S+$/.exec(nth(command.out, 0))?.[0]
      const metrics = Effect.promise(() =>
        fetch(`${address}/metrics`).then((response) => response.text())
      )
      yield* eventually(metrics, (text) => /\npetrel_audit_problems [1-9]/.test(text))
      const { code, out } = yield* eventually(
        run("status", "--check", "--json", ...whereOf(place)),
        ({ out }) => nth(out, 0).includes("deliveries-missing")
      )
      assert.strictEqual(code, 1)
      assert.include(
        (parse(nth(out, 0)).problems as ReadonlyArray<{ readonly code: string }>).map(
          (problem) => problem.code
        ),
        "deliveries-missing"
      )
      yield* command.signal("SIGTERM")
      assert.strictEqual(yield* command.ended, 0)
    })
  )

  scenario("has problems that it finds in the status, also where no delivery is missing", (place) =>
    Effect.gen(function* () {
      const { deleteMessage, names } = yield* Broker
      yield* publishMany(3)
      // No router has seen it: nothing but the gap tells of it.
      yield* deleteMessage("remove", names.events, 2)
      const command = yield* startConsole(place, "--roles", "audit")
      yield* command.until((_, err) =>
        err.some((line) => line.includes("the audit has found problems"))
      )
      const { notices } = yield* readStatus
      assert.include(
        notices.map(({ code, text }) => `${code}: ${text.replace(/ \(.*\)/, "")}`),
        "audit-problems: the last audit found 1 problem: `petrel audit` names it"
      )
      const audited = yield* run("audit", ...whereOf(place))
      assert.include(
        audited.out.join("\n").replaceAll(/\s+/g, " "),
        "event 2 is no longer in the event stream: it was removed"
      )
    })
  )

  scenario("audits only with the role for it, and one of several", (place) =>
    Effect.gen(function* () {
      yield* publishMany(1)
      const audited = (lines: ReadonlyArray<string>) =>
        lines.some((line) => line.includes("the audit continues"))
      const without = yield* startConsole(place, "--roles", "api")
      const first = yield* startConsole(place, "--roles", "audit")
      yield* first.until((_, err) => audited(err))
      const second = yield* startConsole(place, "--roles", "audit")
      yield* first.signal("SIGTERM")
      assert.strictEqual(yield* first.ended, 0)
      yield* second.until((_, err) => audited(err))
      assert.isFalse(audited(without.err))
    })
  )
})
