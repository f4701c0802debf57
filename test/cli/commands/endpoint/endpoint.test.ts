import { spawn } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../../../src/broker/broker.ts"
import { readLayout } from "../../../../src/broker/installed.ts"
import { thisUser } from "../../../../src/cli/flags/shared.ts"
import { partitionOf } from "../../../../src/domain/names.ts"
import { timeText } from "../../../../src/domain/timestamp.ts"
import { suspendEndpoint } from "../../../../src/endpoints/endpoint-state.ts"
import { writeHealth } from "../../../../src/endpoints/health-store.ts"
import { endpoint, eventually, history, nth, publish, worker } from "../../../kit/engine.ts"
import { receiver } from "../../../kit/receiver.ts"
import { installations, parse, program } from "../../command-line.ts"
import { run } from "../../in-process.ts"

const place = installations()

describe("petrel endpoint", () => {
  it.live("shows a space between the name of each setting and its value", () => {
    const { flags, run: installed } = place()
    const url = ["--url", "https://hook.example.com/in"]
    const redirects = ["--redirects", "3", "--redirects-to", "https://eu.example.com"]
    return installed(
      Effect.gen(function* () {
        yield* run("endpoint", "add", "acme/hook", ...url, ...redirects, ...flags)
        const { out } = yield* run("endpoint", "show", "acme/hook", ...flags)
        assert.match(out.join("\n"), /^ {2}redirect to +https:\/\/eu\.example\.com$/m)
        for (const row of out.join("\n").split("\n").slice(1))
          assert.match(row, /^ {2}.{11} \S/, row)
      })
    )
  })

  it.live("is removed with what comes straight from events, which is said", () => {
    const { flags, run: installed } = place()
    const remove = (...args: ReadonlyArray<string>) =>
      run("endpoint", "remove", "acme/hook", ...args, ...flags)
    return installed(
      Effect.gen(function* () {
        let answer = () => {}
        const hook = yield* receiver({
          answer: (_, response) => {
            answer = () => response.end()
            return undefined
          }
        })
        const told = yield* history
        yield* endpoint({ url: hook.url, maxInFlight: 1 })
        yield* worker()
        for (const body of ["1", "2", "3"]) yield* publish("a", body)
        yield* hook.received(1)
        const refused = yield* eventually(remove(), ({ err }) => nth(err, 0).includes(" 3 "))
        assert.match(
          nth(refused.err, 0),
          /at least 3 deliveries wait for acme\/hook, and end as dead letters where it is removed, except those in flight that succeed: say --yes/
        )
        const removed = yield* remove("--yes")
        assert.deepStrictEqual(removed.out, [
          "acme/hook is removed; at least 3 deliveries that waited for it end as dead letters, except those in flight that succeed"
        ])
        answer()
        yield* told.count("dead-lettered", 2)
        yield* told.count("delivered", 1)
      })
    )
  })

  it.live("manages an endpoint from its making to its end", () => {
    const { flags, run: installed } = place()
    const petrel = (...args: ReadonlyArray<string>) => run("endpoint", ...args, ...flags)
    return installed(
      Effect.gen(function* () {
        const wrong = yield* petrel("add", "acme/hook", "--sign", "x", "--timeout", "1")
        assert.strictEqual(
          nth(wrong.err, 0),
          `petrel: --url is missing; --sign "x" must be one of standard, standard-ed25519, stripe, github, none; --timeout "1" must be a length of time such as '30 seconds', 5m or 72h`
        )

        const added = yield* petrel(
          ...[
            "add",
            "acme/hook",
            "--url",
            "https://example.com/h",
            "--types",
            "invoice.>,*.created"
          ],
          ...["--timeout", "5s", "--header", "x-key: hush", "--json"]
        )
        assert.strictEqual(added.code, 0)
        assert.match(nth(added.err, 1), /the time-out of 5 s is short/)
        const { secret, ...json } = parse(nth(added.out, 0))
        assert.match(String(secret), /^whsec_/)
        assert.match(String(json.generation), /^[0-9a-f]{16}$/)
        assert.deepInclude(json, {
          tenant: "acme",
          id: "hook",
          url: "https://example.com/h",
          types: ["invoice.>", "*.created"],
          timeout: "5 seconds",
          headers: { "x-key": "********" }
        })

        const made = yield* petrel("add", "acme", "--url", "https://example.com/h", "--json")
        const { id } = parse(nth(made.out, 0))
        assert.match(String(id), /^ep_[0-9a-f]{16}$/)
        const nothing = yield* petrel("remove", `acme/${id}`, "--yes")
        assert.deepStrictEqual(nothing.out, [`acme/${id} is removed; nothing waited for it`])
        const twice = yield* petrel("add", "acme/hook", "--url", "https://example.com/h")
        assert.match(nth(twice.err, 0), /acme\/hook already: change it with `petrel endpoint set`/)

        const [shown, masked, revealed, list] = yield* Effect.all([
          petrel("show", "acme/hook"),
          petrel("show", "acme/hook", "--json"),
          petrel("show", "acme/hook", "--json", "--reveal"),
          petrel("list")
        ])
        assert.include(shown.out.join("\n"), "types       invoice.>, *.created")
        for (const { out } of [shown, masked, list]) {
          assert.notInclude(out.join("\n"), String(secret))
          assert.notInclude(out.join("\n"), "hush")
        }
        const open = parse(nth(revealed.out, 0))
        assert.deepInclude(open, {
          headers: { "x-key": "hush" },
          secrets: [{ value: secret, createdAt: json.createdAt }]
        })
        assert.match(nth(list.out, 1), /^acme\/hook {2}enabled .* https:\/\/example\.com\/h$/)

        const set = yield* petrel("set", "acme/hook", "--max-in-flight", "3", "--no-timeout")
        assert.deepStrictEqual(set.out, ["acme/hook is changed: max-in-flight, timeout"])
        const same = yield* petrel("set", "acme/hook", "--max-in-flight", "3")
        assert.match(nth(same.out, 0), /^acme\/hook is unchanged/)

        const rotated = yield* petrel("rotate", "acme/hook", "--json", "--keep-old", "1h")
        const fresh = parse(nth(rotated.out, 0))
        assert.match(String(fresh.secret), /^whsec_/)
        assert.notStrictEqual(fresh.secret, secret)

        const off = yield* petrel("disable", "acme/hook", "--reason", "moving house", "--by", "ana")
        assert.match(nth(off.out, 0), /^acme\/hook is disabled/)
        const state = parse(nth((yield* petrel("show", "acme/hook", "--json")).out, 0))
        assert.deepInclude(state.disabled, { reason: "moving house", by: "ana" })
        const on = yield* petrel("enable", "acme/hook", "--json", "--by", "bo")
        assert.notProperty(parse(nth(on.out, 0)), "disabled")
        const { facts } = yield* Effect.tap(history, ({ until }) =>
          until((all) => all.some(({ kind }) => kind === "endpoint-enabled"))
        )
        assert.deepStrictEqual(
          facts.map(({ by, kind, worker }) => [kind, worker, by]),
          [
            ["secrets-revealed", undefined, thisUser()],
            ["endpoint-disabled", "cli", "ana"],
            ["endpoint-enabled", "cli", "bo"]
          ]
        )

        const { names, publish } = yield* Broker
        const { partitions } = yield* readLayout
        const backlog = names.subjects.backlog(
          partitionOf("acme", "hook", partitions),
          "acme",
          "hook"
        )
        yield* publish(backlog, "{}", [])
        yield* publish(backlog, "{}", [])
        const refused = yield* petrel("remove", "acme/hook")
        assert.strictEqual(
          nth(refused.err, 0),
          "petrel: 2 deliveries wait for acme/hook, and end as dead letters where it is removed: say --yes to remove it, or `petrel endpoint pause acme/hook` to keep them"
        )
        assert.strictEqual(refused.code, 1)
        assert.strictEqual((yield* petrel("show", "acme/hook")).code, 0)
        const removed = yield* petrel("remove", "acme/hook", "--yes")
        assert.deepStrictEqual(removed.out, [
          "acme/hook is removed; 2 deliveries that waited for it end as dead letters"
        ])
        const gone = yield* petrel("show", "acme/hook")
        assert.strictEqual(
          nth(gone.err, 0),
          "petrel: there is no endpoint acme/hook: `petrel endpoint list` shows those that exist"
        )
        assert.strictEqual(gone.code, 1)
      })
    )
  })

  it.live("describes endpoints, and lists those with some metadata", () => {
    const { flags, run: installed } = place()
    const petrel = (...args: ReadonlyArray<string>) => run("endpoint", ...args, ...flags)
    return installed(
      Effect.gen(function* () {
        const at = ["--url", "https://example.com/h"]
        const wrong = yield* petrel(
          ...[
            "add",
            "acme/a",
            ...at,
            "--metadata",
            "plan",
            "--metadata",
            "a=1",
            "--metadata",
            "a=2"
          ]
        )
        assert.strictEqual(
          nth(wrong.err, 0),
          `petrel: --metadata "plan" must be a key and its value such as 'customer=42'; --metadata "a" was given twice`
        )
        yield* petrel(
          ...["add", "acme/a", ...at, "--description", "Bills"],
          ...["--metadata", "plan=gold", "--metadata", "note=a=b"]
        )
        yield* petrel("add", "acme/b", ...at, "--metadata", "plan=free")
        const shown = (yield* petrel("show", "acme/a")).out.join("\n")
        assert.match(shown, /description +Bills\n/)
        assert.match(shown, /metadata +plan=gold\n/)
        assert.match(shown, /metadata +note=a=b\n/)
        const gold = yield* petrel("list", "--metadata", "plan=gold", "--json")
        assert.deepStrictEqual(
          gold.out.map((line) => parse(line).id),
          ["a"]
        )
        const named = yield* petrel("list", "--id", "b*", "--json")
        assert.deepStrictEqual(
          named.out.map((line) => parse(line).id),
          ["b"]
        )
        const none = yield* petrel("list", "acme", "--metadata", "plan=tin")
        assert.deepStrictEqual([none.out, none.code], [[], 0])

        const both = yield* petrel(
          ...["set", "acme/a", "--metadata", "plan=free", "--no-metadata", "plan"]
        )
        assert.strictEqual(
          nth(both.err, 0),
          'petrel: --metadata and --no-metadata of "plan" cannot be combined'
        )
        const unknown = yield* petrel("set", "acme/a", "--no-metadata", "constructor")
        assert.strictEqual(
          nth(unknown.err, 0),
          'petrel: --no-metadata "constructor" names an entry that is not there'
        )
        const set = yield* petrel(
          ...[
            "set",
            "acme/a",
            "--no-description",
            "--no-metadata",
            "note",
            "--metadata",
            "plan=tin"
          ]
        )
        assert.deepStrictEqual(set.out, ["acme/a is changed: description, metadata"])
        const { out } = yield* petrel("diff", "acme/a")
        assert.includeMembers(
          out.map((line) => line.trim()),
          ["description Bills → none", "metadata.note a=b → none", "metadata.plan gold → tin"]
        )
      })
    )
  })

  it.live("sets what spares an endpoint, pauses it, and shows how it fares", () => {
    const { flags, run: installed } = place()
    const petrel = (...args: ReadonlyArray<string>) => run("endpoint", ...args, ...flags)
    return installed(
      Effect.gen(function* () {
        const wrong = yield* petrel(
          ...["add", "acme/hook", "--url", "https://example.com/h"],
          ...["--rate", "fast", "--circuit", '{"failure":3}']
        )
        assert.strictEqual(
          nth(wrong.err, 0),
          `petrel: --circuit: failure is not a field; did you mean failures?; --rate "fast" must be requests per second, minute or hour such as 20/s, 30/min or '20/s burst 40', from 1/h to 100000/s`
        )
        assert.strictEqual(wrong.code, 2)

        const added = yield* petrel(
          ...["add", "acme/hook", "--url", "https://example.com/h", "--json"],
          ...["--rate", "20/s burst 40", "--circuit", '{"failures":3,"coolDown":"5 seconds"}']
        )
        const json = parse(nth(added.out, 0))
        assert.deepStrictEqual(json.rate, { perSecond: 20, burst: 40 })
        assert.deepInclude(json.circuit, { failures: 3, coolDown: "5 seconds", successes: 2 })

        const at = Date.now()
        const circuit = {
          state: "open",
          since: at,
          coolDown: 5_000,
          until: at + 5_000,
          why: "3 failures in a row, the last: 503"
        } as const
        const failing = { failuresInRow: 3, permanentInRow: 0, failingSince: at, giveUpAt: at + 9 }
        const generation = String(json.generation)
        const health = { v: 1, generation, circuit, ...failing } as const
        const revision = yield* writeHealth("acme.hook", health, 0)

        const [shown, state, listed] = yield* Effect.all([
          petrel("show", "acme/hook"),
          petrel("show", "acme/hook", "--json"),
          petrel("list")
        ])
        assert.match(shown.out.join("\n"), /circuit +open since .* \(3 failures in a row/)
        assert.match(shown.out.join("\n"), /rate +at most 20\/s burst 40/)
        const fares = parse(nth(state.out, 0))
        assert.deepInclude(fares.circuit, {
          state: "open",
          failures: 3,
          nextProbeAt: timeText(at + 5_000)
        })
        assert.deepStrictEqual(fares.health, {
          ...failing,
          failingSince: timeText(at),
          giveUpAt: timeText(at + 9)
        })
        assert.match(nth(listed.out, 1), /^acme\/hook {2}open /)

        yield* writeHealth("acme.hook", { ...health, generation: "another" }, revision)
        const other = parse(nth((yield* petrel("show", "acme/hook", "--json")).out, 0))
        assert.deepInclude(other.circuit, { state: "closed" })

        const paused = yield* petrel("pause", "acme/hook", "--reason", "moving house", "--json")
        assert.deepInclude(parse(nth(paused.out, 0)), { changed: true })
        const again = yield* petrel("pause", "acme/hook")
        assert.match(nth(again.out, 0), /^acme\/hook is so already: paused since .*: moving house$/)
        assert.match(nth((yield* petrel("list")).out, 1), /^acme\/hook {2}paused /)
        const resumed = yield* petrel("resume", "acme/hook")
        assert.deepStrictEqual(resumed.out, ["acme/hook is resumed: enabled"])
        const twice = yield* petrel("resume", "acme/hook")
        assert.deepStrictEqual(twice.out, ["acme/hook is neither paused nor suspended: enabled"])
        yield* suspendEndpoint({ tenant: "acme", endpoint: "hook" }, "410", "w1")
        const enabled = yield* petrel("enable", "acme/hook")
        assert.strictEqual(enabled.code, 1)
        assert.strictEqual(
          nth(enabled.err, 0),
          "petrel: acme/hook is suspended, not disabled: `petrel endpoint resume acme/hook` sends its deliveries"
        )
        yield* petrel("resume", "acme/hook")
        const { facts } = yield* Effect.tap(history, ({ until }) =>
          until((all) => all.filter(({ kind }) => kind === "endpoint-resumed").length === 2)
        )
        assert.deepStrictEqual(
          facts.map(({ kind, reason, worker }) => [kind, reason, worker]),
          [
            ["endpoint-paused", "moving house", "cli"],
            ["endpoint-resumed", undefined, "cli"],
            ["endpoint-suspended", "410", "w1"],
            ["endpoint-resumed", undefined, "cli"]
          ]
        )

        const set = yield* petrel("set", "acme/hook", "--no-rate", "--circuit", "{}")
        assert.deepStrictEqual(set.out, ["acme/hook is changed: rate, circuit"])
      })
    )
  })

  it.live("sets retry policies for event types, and names of headers", () => {
    const { flags, run: installed } = place()
    const petrel = (...args: ReadonlyArray<string>) => run("endpoint", ...args, ...flags)
    return installed(
      Effect.gen(function* () {
        const inline =
          '{"backoff":{"kind":"fixed","delay":"1 second"},"jitter":"none","maxAttempts":2}'
        const wrong = yield* petrel(
          ...["add", "acme/hook", "--url", "https://example.com/h"],
          ...["--retry-for", `a=${inline}`, "--id-header", "host"]
        )
        assert.strictEqual(
          nth(wrong.err, 0),
          'petrel: --id-header "host" is a header that Petrel or HTTP sets itself; --retry-for "a": window is missing'
        )
        const added = yield* petrel(
          ...["add", "acme/hook", "--url", "https://example.com/h", "--id-header", "x-id"],
          ...["--retry-for", "invoice.>=stripe", "--retry-for", "*.created=mailgun"]
        )
        assert.match(nth(added.err, 0), /libraries for Standard Webhooks refuse .* webhook-id/)
        const equal = yield* petrel("set", "acme/hook", "--retry-for", "invoice.*=github")
        assert.strictEqual(
          nth(equal.err, 0),
          'petrel: --retry-for "invoice.>" and "invoice.*" win equally for an event type such as invoice.x: leave one out, or name more tokens in it'
        )
        const none = yield* petrel("set", "acme/hook", "--no-retry-for", "order.>")
        assert.strictEqual(
          nth(none.err, 0),
          'petrel: --no-retry-for "order.>" names event types that have no retry policy of their own'
        )
        const both = yield* petrel(
          ...["set", "acme/hook", "--no-retry-for", "a", "--retry-for", "a=stripe"]
        )
        assert.strictEqual(
          nth(both.err, 0),
          'petrel: --retry-for and --no-retry-for of "a" cannot be combined'
        )
        const same = yield* petrel("set", "acme/hook", "--type-header", "X-Id")
        assert.strictEqual(
          nth(same.err, 0),
          'petrel: --type-header "X-Id" is also the name of the header of the id: choose another one'
        )
        const shown = (yield* petrel("show", "acme/hook")).out.join("\n")
        assert.match(shown, /sent with +the id in x-id\n/)
        assert.match(shown, /retry for +invoice\.>: stripe \(at most 16 attempts within 3 d\)\n/)
        assert.match(shown, /retry for +\*\.created: mailgun \(at most 5 attempts within 8 h\)\n/)

        const set = yield* petrel(
          ...["set", "acme/hook", "--no-retry-for", "invoice.>", "--id-header", "webhook-id"]
        )
        assert.deepStrictEqual(set.out, ["acme/hook is changed: header-names, retry-for"])
        const json = parse(nth((yield* petrel("show", "acme/hook", "--json")).out, 0))
        assert.deepStrictEqual(json.retryFor, { "*.created": "mailgun" })
        assert.notProperty(json, "headerNames")
        const { out } = yield* petrel("diff", "acme/hook")
        assert.includeMembers(
          out.map((line) => line.trim()),
          ["header-names.id x-id → default", "retry-for invoice.> stripe → none"]
        )
      })
    )
  })

  it.live("shows the public key where receivers verify with one", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { out } = yield* run(
          ...["endpoint", "add", "acme/hook", "--url", "https://example.com/", "--json"],
          ...["--sign", "standard-ed25519", ...flags]
        )
        const { publicKey, secret } = parse(nth(out, 0))
        assert.match(String(publicKey), /^whpk_/)
        assert.match(String(secret), /^whsk_/)
      })
    )
  })

  it.live("warns that GitHub style carries the new signature only", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        yield* endpoint({ sign: "github", secrets: [{ value: "long-enough", createdAt: 1 }] })
        const { err, out } = yield* run("endpoint", "rotate", "acme/hook", ...flags)
        assert.match(nth(out, 0), /^acme\/hook has a new secret, which signs from now on$/)
        assert.match(nth(err, 0), /carries one signature only/)
      })
    )
  })

  it.live("ends where nobody reads what it says any more", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const args = ["endpoint", "add", "acme/unread", "--url", "https://example.com/h", ...flags]
        const code = yield* Effect.callback<number | null>((resume) => {
          // The short time-out is warned of in the log, what was added is told of on stdout.
          const child = spawn(process.execPath, [program, ...args, "--timeout", "5s"])
          child.stdin.destroy()
          child.stdout.destroy()
          child.stderr.destroy()
          child.once("exit", (ended) => resume(Effect.succeed(ended)))
          return Effect.sync(() => child.kill("SIGKILL"))
        })
        assert.strictEqual(code, 0)
        assert.strictEqual((yield* run("endpoint", "show", "acme/unread", ...flags)).code, 0)
      })
    )
  })
})
