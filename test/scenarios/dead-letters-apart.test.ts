import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { startConsole } from "../kit/console.ts"
import { endpoint, history, publishTo, quickRetry, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

describe("a tenant's dead letters", () => {
  scenario("are to another tenant as if they were not there, whatever asks for their numbers", () =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 400 } })
      const retry = quickRetry({ maxAttempts: 1 })
      for (const tenant of ["acme", "globex"]) yield* endpoint({ tenant, url: hook.url, retry })
      const facts = yield* history
      yield* worker()
      yield* publishTo("acme.invoice.paid")
      yield* publishTo("globex.invoice.paid")
      yield* facts.count("dead-lettered", 2)
      const numberOf = (tenant: string) =>
        facts.of("dead-lettered").find((fact) => fact.tenant === tenant)?.dead ?? 0
      const [own, theirs, none] = [numberOf("acme"), numberOf("globex"), 4_711]
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const acme = "/v1/tenants/acme"
      /** What is answered, without the number. */
      const asked = (number: number) =>
        Effect.forEach(
          [
            ask(`${acme}/dead-letters/${number}`, { token }),
            ask(`${acme}/dead-letters/${number}`, { method: "DELETE", token }),
            ...[
              { id: [number] },
              { id: [number], dryRun: true },
              { id: [own, number], dryRun: true }
            ].map((body) => ask(`${acme}/redeliveries`, { method: "POST", token, body }))
          ],
          (answer) =>
            Effect.map(answer, ({ status, text }) => [
              status,
              text
                .replaceAll(/job-\w+-\w+|[\dT:.-]{20,}Z/g, "J")
                .replaceAll(`"id":[${number}]`, '"id":["N"]')
                .replaceAll(`dead letter ${number}:`, "dead letter N:")
            ])
        )
      const [others, missing] = [yield* asked(theirs), yield* asked(none)]
      assert.deepStrictEqual(others, missing)
      assert.strictEqual(others[0]?.[0], 404)
      const found = yield* ask(`${acme}/dead-letters/${own}`, { token })
      assert.strictEqual(found.status, 200)
    })
  )
})
