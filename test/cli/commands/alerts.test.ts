import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import type { AlertRecord } from "../../../src/alerts/alert-store.ts"
import { alertKey } from "../../../src/alerts/alert-store.ts"
import { Broker } from "../../../src/broker/broker.ts"
import { writeValue } from "../../../src/broker/values.ts"
import type { Alert, StandingAlert } from "../../../src/domain/alert.ts"
import type { Fact } from "../../../src/domain/fact.ts"
import { answeredFact } from "../../../src/history/fact-record.ts"
import { Facts } from "../../../src/history/facts.ts"
import { endpoint, eventually, installation } from "../../kit/engine.ts"
import type { TestServer } from "../../kit/nats-server.ts"
import { startServer } from "../../kit/nats-server.ts"
import { run } from "../in-process.ts"
import { start } from "../running.ts"

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.stop())

const append = (kind: Fact["kind"], tenant: string, event: string) =>
  Effect.gen(function* () {
    const facts = yield* Facts
    const at = yield* Clock.currentTimeMillis
    const fact: Fact = { v: 1, kind, at, tenant, endpoint: "billing", event, status: 500 }
    yield* facts.append(fact, crypto.randomUUID())
    return fact
  })

const raisedAt = { raisedAt: "2001-09-09T01:46:40.000Z" }

describe("petrel alerts", () => {
  it.live("does not wait where there is no installation", () =>
    Effect.gen(function* () {
      const { prefix, url } = installation(server)
      const { code, err } = yield* run("alerts", "--nats", url, "--prefix", prefix)
      assert.strictEqual(code, 1)
      assert.match(err.join("\n"), /stream not found: run `petrel init` first/)
    })
  )

  it.live("prints failures as they happen, and of one tenant only where one is named", () => {
    const installed = installation(server)
    const alerts = (...args: ReadonlyArray<string>) =>
      start("alerts", "--nats", installed.url, "--prefix", installed.prefix, ...args)
    return installed.run(
      Effect.gen(function* () {
        yield* append("attempt-failed", "acme", "too-early")
        const all = yield* alerts()
        const one = yield* alerts("--tenant", "acme")
        for (const command of [all, one])
          yield* command.until((_, err) => err.some((line) => line.startsWith("Listening")))
        const json = yield* alerts("--json")
        // With --json nothing is said on stderr: the first failure that arrives says it listens.
        yield* eventually(append("attempt-failed", "globex", "probe"), () => json.out.length > 0)
        yield* append("delivered", "acme", "fine")
        const failed = yield* append("attempt-failed", "acme", "bad")
        const others = (lines: ReadonlyArray<string>) =>
          lines.filter((line) => !line.includes("probe"))
        for (const command of [all, one, json])
          yield* command.until((out) => others(out).length > 0)

        assert.match(
          others(all.out).join("\n"),
          /^\S+ {2}bad → acme\/billing .* {2}no further attempt$/
        )
        assert.deepStrictEqual(one.out, others(all.out))
        const { seq, ...record } = JSON.parse(others(json.out).join("\n"))
        assert.deepStrictEqual(record, answeredFact(failed))
        assert.isAbove(seq, 2)
        for (const command of [all, one, json]) yield* command.signal("SIGTERM")
        for (const command of [all, one, json]) assert.strictEqual(yield* command.ended, 0)
      })
    )
  })

  it.live("lists what is raised now, and says when nothing is", () => {
    const installed = installation(server)
    const flags = ["--nats", installed.url, "--prefix", installed.prefix]
    return installed.run(
      Effect.gen(function* () {
        const none = yield* run("alerts", "list", ...flags)
        assert.deepStrictEqual([none.code, none.err], [0, ["No alert is raised."]])
        const alert: Alert = {
          id: "alert_1",
          name: "success-low",
          about: "endpoint",
          level: "warn",
          value: 97.5,
          threshold: 99,
          unit: "percent",
          windowMs: 600_000,
          raisedAt: 1_000_000_000_000,
          contact: "ana@acme.example",
          failuresInRow: 7,
          lastStatus: 503
        }
        const { names } = yield* Broker
        for (const subject of [
          { tenant: "acme", endpoint: "billing" },
          { tenant: "acme", endpoint: "_" }
        ]) {
          const about = subject.endpoint === "_" ? "tenant" : "endpoint"
          const standing: StandingAlert =
            about === "tenant" ? { ...alert, about, currentValue: 98.6 } : { ...alert, about }
          const record: AlertRecord = { v: 1, raised: [standing] }
          yield* writeValue(names.buckets.alerts, alertKey(subject), JSON.stringify(record))
        }
        const listed = yield* run("alerts", "list", ...flags)
        assert.strictEqual(listed.out.length, 3)
        assert.match(
          listed.out[1] ?? "",
          /^acme +2001-09-09 .* warn +success-low +97.5% succeeded over 10 min, less than 99%; now 98.6%; 7 failed/
        )
        assert.match(
          listed.out[2] ?? "",
          /^acme\/billing .*; 7 failed in a row; the last: 503; contact: ana@acme.example$/
        )
        const json = yield* run("alerts", "list", "--tenant", "acme", "--json", ...flags)
        assert.deepStrictEqual(
          json.out.map((line) => JSON.parse(line)),
          [
            { ...alert, ...raisedAt, about: "tenant", currentValue: 98.6, tenant: "acme" },
            { ...alert, ...raisedAt, tenant: "acme", endpoint: "billing" }
          ]
        )
      })
    )
  })

  it.live("are shown with the endpoint that they are about", () => {
    const installed = installation(server)
    const flags = ["--nats", installed.url, "--prefix", installed.prefix]
    return installed.run(
      Effect.gen(function* () {
        const { names } = yield* Broker
        const contact = "ana@acme.example"
        yield* endpoint({ contact })
        const alert: Alert = {
          id: "alert_1",
          name: "dead-letters",
          about: "endpoint",
          level: "warn",
          value: 3,
          threshold: 1,
          unit: "dead letters",
          windowMs: 600_000,
          raisedAt: 1_000_000_000_000,
          contact,
          lastStatus: 503
        }
        const show = (...args: ReadonlyArray<string>) =>
          run("endpoint", "show", "acme/hook", ...flags, ...args)
        assert.deepInclude(JSON.parse((yield* show("--json")).out.join("")), { raised: [] })
        for (const [id, name] of [
          ["hook", "dead-letters"],
          ["other", "p99-slow"]
        ] as const) {
          const record: AlertRecord = { v: 1, raised: [{ ...alert, name }] }
          const key = alertKey({ tenant: "acme", endpoint: id })
          yield* writeValue(names.buckets.alerts, key, JSON.stringify(record))
        }
        const { out } = yield* show()
        assert.match(
          out.filter((line) => line.startsWith("  raised")).join("\n"),
          /^ {2}raised +dead-letters \(warn\) since .*: 3 dead letters over 10 min; the last failure: 503; contact: ana@acme\.example$/
        )
        assert.deepInclude(JSON.parse((yield* show("--json")).out.join("")), {
          raised: [{ ...alert, ...raisedAt }]
        })
      })
    )
  })

  it.live("sends a test, and says who gets it and who might", () => {
    const installed = installation(server)
    const test = (...args: ReadonlyArray<string>) =>
      run("alerts", "test", ...args, "--nats", installed.url, "--prefix", installed.prefix)
    return installed.run(
      Effect.gen(function* () {
        const system = yield* test()
        assert.match(system.out[0] ?? "", /^Sent a test alert about the system, alert_test_/)
        assert.include(system.out.join("\n"), '{"systemAlertsTo":"TENANT"}')
        const none = yield* test("acme")
        assert.include(
          none.out.join("\n"),
          "`petrel endpoint add acme/ops --operational --url URL`"
        )
        yield* endpoint({ id: "all", types: [">"] })
        yield* endpoint({ id: "ops", types: ["petrel.alert.>"] })
        const { code, out } = yield* test("acme", "--json")
        assert.strictEqual(code, 0)
        const sent = JSON.parse(out.join(""))
        assert.deepInclude(sent, { tenant: "acme", endpoints: [{ id: "ops" }] })
        assert.deepInclude(sent.alert, { name: "test", about: "tenant" })
        const wrong = yield* test("not a tenant")
        assert.notStrictEqual(wrong.code, 0)
      })
    )
  })

  it.live(
    "shows and changes thresholds: a tenant's over those of all, and says what is wrong",
    () => {
      const installed = installation(server)
      const flags = ["--nats", installed.url, "--prefix", installed.prefix]
      const thresholds = (...args: ReadonlyArray<string>) =>
        run("alerts", "thresholds", ...args, ...flags)
      return installed.run(
        Effect.gen(function* () {
          const usual = yield* thresholds()
          assert.include(usual.out.join("\n"), "successWarnPercent      99")
          yield* thresholds("--set", '{"window":"30 minutes","waitingGrowth":"off"}')
          yield* thresholds(
            "acme",
            "--set",
            '{"successWarnPercent":98,"p99Time":"1 hour","contact":"ana"}'
          )
          const shown = yield* thresholds("acme")
          assert.match(shown.out.join("\n"), /^ {2}contact +ana {2}\(set\)$/m)
          const read = (line: string | undefined) => JSON.parse(line ?? "")
          const [acme, all] = yield* Effect.all([
            thresholds("acme", "--json"),
            thresholds("--json")
          ])
          assert.deepInclude(read(acme.out[0]).thresholds, {
            successWarnPercent: 98,
            successCriticalPercent: 95,
            p99Time: "1 h",
            window: "30 min"
          })
          assert.strictEqual(read(acme.out[0]).contact, "ana")
          assert.deepInclude(read(all.out[0]).thresholds, {
            successWarnPercent: 99,
            p99Time: "5 min",
            waitingGrowth: "off"
          })
          const unheard = yield* thresholds("--set", '{"systemAlertsTo":"acmee"}')
          assert.strictEqual(unheard.code, 0)
          assert.match(
            unheard.out.join("\n"),
            /systemAlertsTo +acmee {2}\(set\)\nNo endpoint of acmee gets them: add one with `petrel endpoint add acmee\/ops --operational/
          )
          yield* endpoint({ tenant: "acmee", types: ["petrel.alert.>"] })
          assert.notInclude((yield* thresholds()).out.join("\n"), "No endpoint")

          const back = yield* thresholds("acme", "--unset", "--json")
          assert.deepInclude(read(back.out[0]), { set: [] })

          const [misspelt, wrong, system] = yield* Effect.all([
            thresholds("acme", "--set", '{"sucessWarnPercent":98}'),
            thresholds("acme", "--set", '{"samples":"many"}'),
            thresholds("acme", "--set", '{"waitingGrowth":1}')
          ])
          assert.deepStrictEqual([misspelt.code, wrong.code, system.code], [2, 2, 2])
          assert.match(
            misspelt.err.join("\n"),
            /--set: sucessWarnPercent is not a field; did you mean successWarnPercent\?/
          )
          assert.match(wrong.err.join("\n"), /--set: samples "many" must be /)
          assert.match(system.err.join("\n"), /--set: waitingGrowth is not/)
        })
      )
    }
  )
})
