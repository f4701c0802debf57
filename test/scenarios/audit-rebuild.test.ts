import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { eraseHealth, readHealth } from "../../src/endpoints/health-store.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { parse } from "../cli/command-line.ts"
import { run } from "../cli/in-process.ts"
import { endpoint, history, nth, publishMany, quickRetry, worker } from "../kit/engine.ts"
import { patientRetry } from "../kit/outcomes.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

describe("petrel rebuild health", () => {
  scenario("finds nothing to change, and brings back what was lost", (place) =>
    Effect.gen(function* () {
      const { eventRoot, prefix, url } = place
      const rebuild = (...args: ReadonlyArray<string>) =>
        run(
          ...["rebuild", "health", "--json", ...args],
          ...["--nats", url, "--prefix", prefix, "--events", eventRoot]
        )
      const hook = yield* receiver({
        answer: ({ path }) => ({ status: path === "/bad" ? 400 : path === "/down" ? 503 : 200 })
      })
      const told = yield* history
      const retry = quickRetry()
      yield* endpoint({ id: "well", url: `${hook.url}/well`, retry })
      yield* endpoint({ id: "bad", url: `${hook.url}/bad`, retry })
      yield* endpoint({
        id: "down",
        url: `${hook.url}/down`,
        retry: patientRetry,
        maxInFlight: 1,
        circuit: { failures: 3, rate: "none", coolDown: "10 minutes" }
      })
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* worker()
          yield* publishMany(4)
          yield* told.count("delivered", 4)
          yield* told.count("dead-lettered", 4)
          yield* told.count("circuit-opened", 1)
          yield* told.count("attempt-failed", 7)
          const refused = yield* rebuild()
          assert.strictEqual(refused.code, 2)
          assert.match(nth(refused.err, 0), /stop w1 first/)
        })
      )
      const same = yield* rebuild("--dry-run")
      assert.deepStrictEqual(same.out, [], same.out.join("\n"))

      const { health } = yield* readHealth("acme", "down")
      assert.strictEqual(health?.circuit.state, "open")
      assert.deepStrictEqual((yield* audit({})).remarks, [])
      yield* eraseHealth("acme.down")
      const { judgement, remarks } = yield* audit({})
      assert.strictEqual(judgement.verdict, "clean")
      assert.deepStrictEqual(
        remarks.map(({ endpoint, kind }) => [kind, endpoint]),
        [["health-differs", "down"]]
      )
      const looked = yield* rebuild("--dry-run")
      const { differences, endpoint: name } = parse(nth(looked.out, 0))
      assert.strictEqual(name, "acme/down")
      assert.deepInclude(differences, {
        ...{ field: "circuit.state", stored: "closed", told: "open" }
      })
      assert.isUndefined((yield* readHealth("acme", "down")).health)
      assert.strictEqual((yield* rebuild()).code, 0)
      assert.deepStrictEqual((yield* readHealth("acme", "down")).health, health)
    })
  )
})
