import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { changeSource } from "../../../src/intake/source-store.ts"
import { eventually, history, nth } from "../../kit/engine.ts"
import { stripeEvent, stripeSource } from "../../kit/gateway.ts"
import { providerApi, stripeEvents } from "../../kit/provider-api.ts"
import { installations, parse } from "../command-line.ts"
import { run, runWith } from "../in-process.ts"
import { start } from "../running.ts"

const place = installations()

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "petrel-reconcile-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

const lately = Math.floor(Date.now() / 1_000) - 600
const events = [0, 1].map((n) => ({ ...stripeEvent(`evt_${n}`), created: lately - n }))

describe("petrel reconcile", () => {
  it.live("says what is missing, fetches it with credentials of a file, and then has all", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        yield* stripeSource()
        const api = yield* providerApi(stripeEvents(events))
        const key = join(yield* folder, "stripe.key")
        writeFileSync(key, "sk_test_1\n")
        const where = ["--api-url", api.url, "--allow-network", "127.0.0.1", ...flags]
        const petrel = (...args: ReadonlyArray<string>) =>
          run("reconcile", "acme/stripe", "--api-key-file", key, ...args, ...where)

        const planned = yield* petrel("--dry-run", "--json")
        assert.strictEqual(planned.code, 1)
        assert.match(planned.err.join(), /events are missing/)
        assert.deepStrictEqual(
          planned.out
            .map(parse)
            .map(({ became, event, id, missing }) => [event, id ?? missing, became]),
          [
            ["missing", "evt_0", "found"],
            ["missing", "evt_1", "found"],
            ["done", 2, undefined]
          ]
        )
        const done = yield* petrel("--by", "ana")
        assert.strictEqual(done.code, 0, done.err.join())
        assert.match(nth(done.out, 0), /evt_0 {2}invoice\.paid {2}fetched/)
        assert.match(
          done.out.join("\n"),
          /2 events listed, 0 had come in, 2 had not\n2 events fetched/
        )
        const facts = yield* history
        yield* facts.count("reconciled", 1)
        assert.deepInclude(facts.of("reconciled")[0], { by: "ana" })
        const again = yield* runWith(
          "sk_test_1\n",
          ...["reconcile", "acme/stripe", "--api-key", "-", "--json", ...where]
        )
        assert.deepInclude(parse(nth(again.out, 0)), { event: "done", present: 2, missing: 0 })
        const shown = yield* run("history", ...flags)
        assert.match(
          shown.out.join("\n"),
          /source stripe reconciled by ana: 2 listed, 2 missing, 2 f/
        )
        const long = yield* petrel("--since", "31d")
        assert.match(
          long.err.join(),
          /stripe lists what has happened within 30 d: what is older is not/
        )
        const source = yield* run("source", "show", "acme/stripe", ...flags)
        assert.match(source.out.join("\n"), /reconciled +\S+.*: 2 listed, 0 missing, 0 fetched/)
        assert.notInclude(JSON.stringify([done, again, facts.facts]), "sk_test")
      }).pipe(Effect.scoped)
    )
  })

  it.live("is done by petrel ingest at a source's interval, and counted", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        yield* stripeSource()
        yield* changeSource({ tenant: "acme", id: "stripe" }, (source) =>
          Effect.succeed({ ...source, createdAt: 1 })
        )
        const api = yield* providerApi(stripeEvents(events))
        const set = yield* runWith(
          "sk_test_1",
          ...["source", "set", "acme/stripe", "--reconcile", "1h", "--api-key", "-"],
          ...["--api-url", api.url, ...flags]
        )
        assert.strictEqual(set.code, 0, set.err.join())
        const facts = yield* history
        const local = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--json"]
        const running = yield* start("ingest", ...local, "--allow-network", "127.0.0.1", ...flags)
        yield* facts.count("reconciled", 1)
        assert.deepInclude(facts.of("reconciled")[0]?.reconciled, { missing: 2, fetched: 2 })
        yield* running.until((out) => out.length > 0)
        const { metrics } = parse(nth(running.out, 0))
        yield* eventually(
          Effect.promise(async () => (await fetch(String(metrics))).text()),
          (text) =>
            text.includes(`petrel_intake_reconciled_total{source="acme/stripe",found="fetched"} 2`)
        )
      }).pipe(Effect.scoped)
    )
  })

  it.live("compares what a command prints", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        yield* stripeSource()
        const petrel = (command: string) =>
          run("reconcile", "acme/stripe", "--command", command, ...flags)
        const body = JSON.stringify({ id: "evt_0", at: Date.now() - 3e6, body: events[0] })
        const some = yield* petrel(`echo '${body}'; echo evt_9; test -n "$PETREL_SINCE"`)
        assert.strictEqual(some.code, 1)
        const text = some.out.join("\n")
        assert.match(text, /evt_0 .*fetched/)
        assert.match(text, /evt_9 {2}not fetched: the command lists it, and prints no body/)
        assert.match(text, /2 events listed, 0 had come in, 2 had not/)
        assert.match(some.err.join(), /some events could not be fetched/)
        const one = yield* petrel("echo evt_0")
        assert.strictEqual(one.code, 0)
        for (const [command, text] of [
          ["echo evt_0; echo oh no >&2; exit 3", /the command failed: it ended with 3: oh no/],
          ["echo '{\"at\":1}'", /a line of JSON has no "id"/],
          ["echo '{'", /a line that begins with \{ is not JSON/]
        ] as const) {
          const failed = yield* petrel(command)
          assert.strictEqual(failed.code, 1)
          assert.match(failed.err.join(), text)
        }
        // Before it is in memory as a whole: it may have no end.
        const begun = performance.now()
        const endless = yield* petrel("head -c 5000000 /dev/zero | tr '\\0' x; exec sleep 20")
        assert.match(endless.err.join(), /a line has more than 4194304 characters/)
        assert.isBelow(performance.now() - begun, 15_000)
      })
    )
  })

  it.live("says what is wrong", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        yield* stripeSource()
        const key = join(yield* folder, "key")
        writeFileSync(key, "sk_test_1")
        const withKey = ["--api-key-file", key]
        const cases = [
          [["acme/other"], 1, /there is no source acme\/other/],
          [["acme/stripe"], 2, /--api-key is missing: .* API of Stripe, .*PETREL_API_KEY/],
          [["acme/stripe", "--api-key", "sk_1"], 2, /--api-key takes -/],
          [["acme/stripe", "--api-key-file", "/none"], 2, /cannot be read/],
          [["acme/stripe", ...withKey, "--webhook-id", "x"], 2, /--webhook-id must be the id/],
          [["acme/stripe", ...withKey, "--since", "1m"], 2, /--since must be before --until/],
          [["acme/stripe", ...withKey, "--types", "a,,b"], 2, /--types must be patterns/],
          [["acme/stripe", ...withKey, "--allow-network", "x"], 2, /--allow-network "x" is not/],
          [
            ["acme/stripe", ...withKey, "--api-url", "ftp://x"],
            2,
            /--api-url must be the URL of an API/
          ],
          [["acme/stripe", ...withKey, "--api-url", "http://10.0.0.1"], 2, /must begin with https/],
          [
            ["acme/stripe", ...withKey, "--api-url", "https://127.0.0.1"],
            1,
            /not allowed; if this is intended, allow/
          ]
        ] as const
        for (const [args, code, text] of cases) {
          const said = yield* run("reconcile", ...args, ...flags)
          assert.match(said.err.join("\n"), text, args.join(" "))
          assert.strictEqual(said.code, code, args.join(" "))
        }
      }).pipe(Effect.scoped)
    )
  })
})
