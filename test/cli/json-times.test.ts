import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type AlertRecord, alertKey } from "../../src/alerts/alert-store.ts"
import { Broker } from "../../src/broker/broker.ts"
import { writeValue } from "../../src/broker/values.ts"
import { healthy } from "../../src/domain/health.ts"
import { nobody } from "../../src/domain/token.ts"
import { writeHealth } from "../../src/endpoints/health-store.ts"
import { quarantine } from "../../src/intake/quarantine.ts"
import { serveProjection } from "../../src/projection/remote-log.ts"
import { caughtUp, directory, optionsOf } from "../kit/delivery-log.ts"
import { endpoint, eventually, history, lateRetry, nth, publish, worker } from "../kit/engine.ts"
import { startServer } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"
import { installations } from "./command-line.ts"
import { helpOf, subcommandsIn } from "./help.ts"
import { run } from "./in-process.ts"
import { start } from "./running.ts"
import { timesAsNumbers } from "./times-as-numbers.ts"

const install = installations()

/** Commands that only have subcommands. */
const groups = new Set([
  ...["endpoint", "tenant", "token", "portal", "dead", "delivery", "projection", "rebuild"],
  ...["source", "quarantine", "inbox"]
])

/** Their output is read with a database, where numbers are looked for too. */
const withDatabase = [
  ...["inbox list", "inbox show", "inbox retry", "inbox resolve", "inbox migrate"],
  ...["outbox", "outbox migrate", "outbox list", "outbox release", "outbox discard"],
  ...["outbox status", "outbox forget"]
]

/** Commands that are not asked here, and why. */
const leftOut = {
  dev: "makes a broker of its own; what it prints is read in dev.test.ts, where numbers are looked for too",
  openapi: "prints a document, whatever the flags",
  repartition: "needs a time without workers; it prints counts",
  "rebuild endpoints": "prints nothing unless a bucket was removed, and then names"
}

/** Returns all commands that do something. */
const commandsBelow = (
  path: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<string>, unknown> =>
  Effect.gen(function* () {
    const inner = yield* Effect.forEach(subcommandsIn(yield* helpOf(path)), (name) =>
      commandsBelow([...path, name])
    )
    const name = path.join(" ")
    return [...(name === "" || groups.has(name) ? [] : [name]), ...inner.flat()]
  })

describe("--json", () => {
  it.live(
    "has no time as a number, whatever the command",
    () => {
      const place = install()
      const asked = new Set<string>()
      const wrong: Array<string> = []
      const look = (command: string, lines: ReadonlyArray<string>) => {
        asked.add(command)
        assert.isNotEmpty(lines, command)
        for (const line of lines) wrong.push(...timesAsNumbers(JSON.parse(line), command))
      }
      /** Runs a command to its end. */
      const ask = (command: string, ...args: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const { err, out } = yield* run(...command.split(" "), ...args, "--json", ...place.flags)
          assert.isNotEmpty(out, `${command}: ${err.join("\n")}`)
          look(command, out)
          return out
        })
      /** Starts a command that goes on, and ends it after so many lines. */
      const listen = (command: string, lines: number, ...args: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const running = yield* start(command, ...args, "--json", ...place.flags)
          yield* running.until((out) => out.length >= lines)
          look(command, running.out)
          return running
        })

      return place.run(
        Effect.gen(function* () {
          const hook = yield* receiver({
            answer: ({ body }) => ({ status: Number(body.toString().slice(0, 3)) })
          })
          yield* endpoint({ url: hook.url, retry: lateRetry })
          yield* endpoint({ id: "odd", generation: "g" })
          const circuit = { state: "open", since: Date.now(), until: Date.now() + 1e9 } as const
          yield* writeHealth("acme.odd", { ...healthy("g"), circuit }, 0)
          const facts = yield* history
          const log = yield* serveProjection(optionsOf(place, yield* directory))
          yield* worker({ id: "w0" })
          for (const [id, body] of [
            ["one", "200"],
            ["two", "400"],
            ["three", "500"],
            ["four", "400"]
          ] as const)
            yield* publish("invoice.paid", body, { "Nats-Msg-Id": `acme.${id}` })
          yield* facts.count("delivered", 1)
          yield* facts.count("dead-lettered", 2)
          yield* facts.count("attempt-failed", 3)
          yield* caughtUp(log.status)

          yield* ask("init")
          yield* ask("status")
          yield* ask("workers")
          yield* ask("upgrade")
          yield* ask("rebuild health", "--dry-run")
          yield* ask("history")
          yield* ask("history export")
          yield* ask("history totals", "--by", "day")
          yield* ask("history totals", "--by-endpoint")
          yield* ask("stats", "acme/hook")
          yield* ask("attempts")
          yield* ask("events")
          yield* ask("projection status")
          yield* ask("delivery show", "acme.two.hook")
          yield* ask("delivery show", "acme.three.hook")
          yield* ask("delivery retry", "acme.three.hook")
          yield* ask("audit")
          yield* ask("dead list")
          yield* ask("dead show", "1")
          yield* ask("dead redeliver", "--id", "1", "--dry-run")
          yield* ask("dead redeliver", "--id", "1")
          yield* ask("dead discard", "--id", "2", "--dry-run", "--yes")
          yield* ask("dead discard", "--id", "2", "--yes")
          yield* ask("dead list")
          yield* ask("delivery resend", "acme.one.hook")
          const replayed = ["--to", "acme/hook", "--since", "1h"]
          yield* ask("replay", ...replayed, "--dry-run")
          yield* ask("replay", ...replayed)

          const copy = join(yield* directory, "copy")
          yield* ask("backup", copy)
          const other = yield* Effect.acquireRelease(
            Effect.promise(() => startServer()),
            ({ stop }) => Effect.promise(stop)
          )
          const there = ["--nats", other.url, ...place.flags.slice(2)]
          const restored = yield* run("restore", copy, "--json", ...there)
          look("restore", restored.out)

          yield* ask("endpoint add", "acme/crm", "--url", hook.url)
          yield* ask("endpoint set", "acme/crm", "--max-in-flight", "3")
          yield* ask("endpoint rotate", "acme/crm")
          yield* ask("endpoint pause", "acme/crm", "--reason", "maintenance")
          yield* ask("endpoint show", "acme/crm")
          yield* ask("endpoint resume", "acme/crm")
          yield* ask("endpoint disable", "acme/crm")
          yield* ask("endpoint show", "acme/crm")
          yield* ask("endpoint enable", "acme/crm")
          yield* ask("endpoint test", "acme/crm", "--body", "200")
          yield* ask("endpoint diagnose", "acme/crm")
          yield* ask("endpoint retry-now", "acme/hook")
          yield* ask("endpoint recover", "acme/hook", "--since", "1h", "--dry-run")
          yield* ask("endpoint recover", "acme/hook", "--since", "1h")
          yield* ask("endpoint list")
          yield* ask("endpoint show", "acme/hook", "--retry")
          yield* eventually(ask("endpoint show", "acme/crm", "--history"), (out) => out.length > 6)
          yield* ask("endpoint diff", "acme/crm", "1", "3").pipe(Effect.exit)
          yield* ask("endpoint diff", "acme/crm")
          yield* ask("endpoint remove", "acme/crm", "--yes")

          const signed = ["--provider", "stripe", "--secret", "whsec_one"]
          yield* ask("source add", "acme/stripe", ...signed)
          yield* ask("source set", "acme/stripe", "--rate", "200/s")
          yield* ask("source rotate", "acme/stripe", "--secret", "whsec_two", "--keep-old", "1h")
          yield* ask("source list")
          yield* ask("source show", "acme/stripe")
          const note = {
            ...{ source: "stripe", provider: "stripe", problem: "no JSON" },
            ...{ headers: {}, method: "POST", url: "http://127.0.0.1/in/acme/stripe" },
            reason: "unreadable" as const,
            contentType: "text/plain"
          }
          yield* quarantine("acme", note, Buffer.from("200"))
          yield* quarantine("acme", note, Buffer.from("400"))
          const aside = yield* ask("quarantine list", "acme")
          const [first, second] = aside.map((line) => String(JSON.parse(line).number))
          yield* ask("quarantine show", "acme", first ?? "")
          yield* ask("quarantine release", "acme", first ?? "", "--type", "invoice.paid")
          yield* ask("quarantine discard", "acme", second ?? "")
          yield* listen("ingest", 1, "--listen", "127.0.0.1:0")
          const listed = JSON.stringify({ id: "evt_1", at: Date.now() - 3_600_000, body: 200 })
          yield* ask("reconcile", "acme/stripe", "--command", `echo '${listed}'`, "--dry-run")
          yield* ask("source remove", "acme/stripe")

          yield* ask("tenant show", "acme")
          yield* ask("tenant set", "acme", "--max-timeout", "15m")
          const made = yield* ask("token create", "acme", "--scope", "all", "--expires", "1h")
          const { id } = JSON.parse(nth(made, 0))
          yield* ask("token list")
          yield* ask("token show", id)
          yield* ask("portal link", "acme")
          yield* ask("login")
          yield* ask("token revoke", id)
          yield* ask("publish", "acme", "invoice.paid", "200")
          yield* ask("alerts test", "acme")
          yield* ask("alerts thresholds", "acme", "--set", '{"window":"30 minutes"}')
          const { names } = yield* Broker
          const raised: AlertRecord = {
            v: 1,
            raised: [
              {
                ...{ id: "1", name: "waiting-growing", about: "system", level: "warn" },
                ...{ value: 1, threshold: 1, unit: "count", windowMs: 1, raisedAt: Date.now() }
              }
            ]
          }
          yield* writeValue(
            names.buckets.alerts,
            alertKey({ tenant: nobody, endpoint: nobody }),
            JSON.stringify(raised)
          )
          yield* ask("alerts list")
          yield* ask("presets")
          yield* ask("projection rebuild")

          const heard = yield* start("alerts", "--json", ...place.flags)
          const received = yield* start("receive", "--port", "0", "--json", ...place.flags)
          yield* received.until((out) => out.length > 0)
          const { url } = JSON.parse(nth(received.out, 0))
          yield* Effect.promise(() => fetch(url, { method: "POST", body: "{}" }))
          yield* received.until((out) => out.length > 1)
          look("receive", received.out)
          yield* listen("status", 1, "--watch")
          yield* listen("worker", 1, "--id", "w1")
          yield* listen("console", 1, "--listen", "127.0.0.1:0", "--data", yield* directory)
          yield* eventually(
            Effect.andThen(publish("invoice.paid", "400"), Effect.succeed(heard.out)),
            (out) => out.length > 0
          )
          look("alerts", heard.out)
          return undefined
        }).pipe(
          Effect.scoped,
          Effect.andThen(
            Effect.gen(function* () {
              assert.deepStrictEqual([...new Set(wrong)], [])
              const all = yield* commandsBelow([])
              const known = new Set([...asked, ...Object.keys(leftOut), ...withDatabase])
              assert.deepStrictEqual(
                all.filter((command) => !known.has(command)),
                [],
                "commands that this test does not ask yet"
              )
            })
          )
        )
      )
    },
    120_000
  )
})
