import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { natsClients } from "../../../../src/broker/clients.ts"
import { appendChange, readStory } from "../../../../src/history/configuration.ts"
import { erasableHistory, eventually, nth, worker } from "../../../kit/engine.ts"
import { readByHand, writeByHand } from "../../../kit/live-endpoints.ts"
import { installations, parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"

const place = installations()

/** A time of today, or with its date where the day has changed meanwhile. */
const time = String.raw`(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d`

/** Lines of a story without when it was. */
const untimed = (lines: ReadonlyArray<string>) =>
  lines.map((line) => line.replaceAll(new RegExp(time, "g"), "T"))

const untilKnown = (changes: number) =>
  eventually(readStory("acme", "hook"), ({ length }) => length >= changes)

describe("petrel endpoint show --history, petrel endpoint diff", () => {
  it.live("tell who changed what, through removal and adding again", () => {
    const { flags, run: installed } = place()
    const petrel = (...args: ReadonlyArray<string>) => run("endpoint", ...args, ...flags)
    const as = (who: string, command: string, ...args: ReadonlyArray<string>) =>
      Effect.tap(petrel(command, "acme/hook", ...args, "--by", who), ({ code, err }) =>
        Effect.sync(() => assert.strictEqual(code, 0, err.join("\n")))
      )
    return installed(
      Effect.gen(function* () {
        const url = "https://example.com/a?key=hush"
        yield* as("ana", "add", "--url", url, "--types", "invoice.>", "--header", "x-key: hush")
        const none = yield* petrel("diff", "acme/hook")
        assert.deepStrictEqual(
          [none.code, ...none.out],
          [0, "nothing to compare of acme/hook: it has had no change but revision 1"]
        )
        yield* as(
          "bo",
          "set",
          "--types",
          "invoice.>,order.>",
          "--retry",
          "stripe",
          "--rate",
          "20/s"
        )
        yield* as("bo", "set", "--url", "https://example.com/a?key=other", "--timeout", "15s")
        yield* as("bo", "set", "--header", "x-key: other", "--no-timeout")
        yield* as("bo", "set", "--header", "x-key: another")
        yield* as("cy", "rotate", "--keep-old", "0s")
        yield* as("cy", "disable", "--reason", "moving house")
        yield* as("cy", "enable")
        yield* as("cy", "pause")
        yield* as("cy", "remove")
        yield* as("di", "add", "--url", "https://example.org/", "--sign", "none")

        const shown = yield* petrel("show", "acme/hook", "--history")
        assert.deepStrictEqual(untimed(shown.out), [
          "T  revision 1  added by ana",
          "  url at https://example.com",
          "  types invoice.>",
          "  sign standard",
          "  secret made",
          "  retry default",
          "  max-in-flight 10",
          "  redirects 0",
          "  headers x-key",
          "T  revision 2  changed by bo",
          "  types invoice.> → invoice.>, order.>",
          "  retry default → stripe",
          "  rate no limit → 20/s",
          "T  revision 3  changed by bo",
          "  url changed (same host)",
          "  timeout the policy's → 15 seconds",
          "T  revision 4  changed by bo",
          "  timeout 15 seconds → the policy's",
          "T  revision 5  changed by bo",
          "  only values that the history does not keep: those of secrets and headers",
          "T  revision 6  changed by cy",
          "  secret rotated, the old one dropped",
          "T  revision 7  changed by cy",
          "  disabled since T by cy: moving house",
          "T  revision 8  changed by cy",
          "  enabled",
          "T  revision 9  changed by cy",
          "  paused since T by cy",
          "T  revision 10  removed by cy",
          "T  revision 11  added by di",
          "  url at https://example.org",
          "  types all events",
          "  sign none",
          "  retry default",
          "  max-in-flight 10",
          "  redirects 0"
        ])

        const json = yield* petrel("show", "acme/hook", "--history", "--json")
        assert.notInclude(json.out.join("\n"), "hush")
        const lines = json.out.map((line) => parse(line))
        assert.deepInclude(nth(lines, 2), {
          tenant: "acme",
          id: "hook",
          revision: 3,
          by: "bo",
          change: "changed",
          differences: [
            { setting: "url", from: "https://example.com", to: "https://example.com" },
            { setting: "timeout", to: "15 seconds" }
          ]
        })
        assert.nestedPropertyVal(nth(lines, 2), "configuration.maxInFlight", 10)
        assert.notProperty(nth(lines, 9), "configuration")

        const [ranged, last, removed, unknown, only] = yield* Effect.all(
          [
            petrel("diff", "acme/hook", "1", "4"),
            petrel("diff", "acme/hook", "1", "--json"),
            petrel("diff", "acme/hook"),
            petrel("diff", "acme/hook", "99"),
            petrel("diff", "acme/hook", "0", "11")
          ],
          { concurrency: 2 }
        )
        assert.deepStrictEqual(ranged.out, [
          "acme/hook from revision 1 to 4",
          "  url changed (same host)",
          "  types invoice.> → invoice.>, order.>",
          "  retry default → stripe",
          "  rate no limit → 20/s"
        ])
        const compared = parse(nth(last.out, 0))
        assert.deepInclude(compared, { tenant: "acme", id: "hook", from: 1, to: 11 })
        assert.deepInclude(compared.differences, {
          setting: "url",
          from: "https://example.com",
          to: "https://example.org"
        })
        const sentences = [removed, unknown, only].map(({ out }) => out.join("\n"))
        assert.deepStrictEqual(sentences, [
          "nothing to compare of acme/hook: revision 10 is its removal, which has no settings",
          "nothing to compare of acme/hook: it has no revision 99: the nearest is 11",
          "nothing to compare of acme/hook: it has no revision 0: the nearest is 1"
        ])
        assert.deepStrictEqual(
          [ranged, last, removed, unknown, only].map(({ code }) => code),
          [0, 0, 0, 0, 0]
        )
      })
    )
  })

  it.live("tell what was written by hand, and what nobody can read", () => {
    const { flags, run: installed } = place()
    const petrel = (...args: ReadonlyArray<string>) => run("endpoint", ...args, ...flags)
    return installed(
      Effect.gen(function* () {
        yield* worker()
        yield* petrel("add", "acme/hook", "--url", "https://example.com/h", "--by", "ana")
        const added = yield* readByHand("acme.hook")
        yield* writeByHand("acme.hook", added.replace('"maxInFlight":10', '"maxInFlight":3'))
        yield* untilKnown(2)
        yield* writeByHand("acme.hook", "{")
        yield* untilKnown(3)
        yield* writeByHand("acme.hook", added)
        yield* untilKnown(4)

        const { out } = yield* petrel("show", "acme/hook", "--history")
        assert.deepStrictEqual(untimed(out.filter((line) => !line.startsWith("  "))), [
          "T  revision 1  added by ana",
          "T  revision 2  changed",
          "T  revision 3  made unreadable",
          "T  revision 4  changed"
        ])
        assert.deepStrictEqual(
          out.filter((line) => line.includes("→")),
          ["  max-in-flight 10 → 3", "  max-in-flight 3 → 10"]
        )
        const unreadable = yield* petrel("diff", "acme/hook", "3", "4")
        assert.deepStrictEqual(unreadable.out, [
          "nothing to compare of acme/hook: revision 3 cannot be read"
        ])
        const history = yield* run("history", "--kind", "endpoint-changed", ...flags)
        assert.match(nth(history.out, 0), /acme\/hook +configured: revision 1 by ana$/)
        assert.match(nth(history.out, 2), /acme\/hook +unreadable: revision 3$/)
      })
    )
  })

  it.live("place a removal that left no trace where it was noticed", () => {
    const { run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const before = yield* Clock.currentTimeMillis
        const change = { revision: 3, storedAt: 0 }
        yield* appendChange({ tenant: "acme", endpoint: "hook", change })
        const { at } = nth(yield* readStory("acme", "hook"), 0)
        assert.isAtLeast(at, before)
      })
    )
  })

  it.live("show what is left of a removed endpoint, and say where there is nothing", () => {
    const { flags, run: installed } = place()
    const petrel = (...args: ReadonlyArray<string>) => run("endpoint", ...args, ...flags)
    return installed(
      Effect.gen(function* () {
        yield* erasableHistory
        const { ask, jsm, names } = yield* natsClients
        yield* petrel("add", "acme/hook", "--url", "https://example.com/h", "--by", "ana")
        const look = ask("look", () => jsm.streams.info(names.configuration))
        const { config } = yield* eventually(look, ({ state }) => state.messages === 1)
        // As if the history had become too old, and the copy were behind.
        yield* ask("forget", () => jsm.streams.purge(names.history))
        yield* ask("stop", () =>
          jsm.streams.update(names.configuration, { ...config, sources: [] })
        )
        yield* petrel("remove", "acme/hook", "--by", "bo")
        assert.strictEqual((yield* look).state.messages, 1)
        const [left, never, nothing, both] = yield* Effect.all(
          [
            petrel("show", "acme/hook", "--history"),
            petrel("show", "acme/other", "--history"),
            petrel("diff", "acme/other"),
            petrel("show", "acme/hook", "--history", "--reveal")
          ],
          { concurrency: 2 }
        )
        assert.strictEqual(left.code, 0)
        const steps = untimed(left.out).filter((line) => !line.startsWith("  "))
        assert.deepStrictEqual(steps, [
          "T  revision 1  added by ana",
          "T  revision 2  removed by bo"
        ])
        assert.strictEqual(never.code, 1)
        assert.match(nth(never.err, 0), /there is no endpoint acme\/other/)
        assert.deepStrictEqual(
          [nothing.code, ...nothing.out],
          [0, "nothing to compare of acme/other: the history has no change of it"]
        )
        assert.match(nth(both.err, 0), /--history and --reveal cannot be combined/)
      })
    )
  })
})
