import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { startConsole } from "../kit/console.ts"
import { endpoint } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const acme = "/v1/tenants/acme"

/** Times that no calendar has, or none that RFC 3339 can say. */
const beyond = [
  "+300000-01-01T00:00:00Z",
  "10000-01-01T00:00:00Z",
  "2026-02-30T00:00:00Z",
  "1e300",
  "99999999999999999999"
]

describe.concurrent("times beyond the calendar", () => {
  scenario("are refused where they are asked with, and nothing is tried with them", () =>
    Effect.gen(function* () {
      yield* endpoint()
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const refused = (path: string, body?: unknown) =>
        Effect.gen(function* () {
          const method = body === undefined ? "GET" : "POST"
          const { status, text } = yield* ask(path, { method, token, body })
          assert.strictEqual(status, 400, `${path} ${JSON.stringify(body)}: ${text}`)
        })
      for (const time of beyond) {
        const written = encodeURIComponent(time)
        for (const list of ["deliveries", "dead-letters", "totals"])
          for (const end of ["since", "until"]) yield* refused(`${acme}/${list}?${end}=${written}`)
        for (const value of [time, Number(time)]) {
          yield* refused(`${acme}/redeliveries`, { endpoint: "hook", since: value })
          yield* refused(`${acme}/replays`, { endpoint: "hook", until: value })
          yield* refused(`${acme}/tokens`, { scopes: ["events:publish"], expiresAt: value })
        }
      }
      for (const keepOld of ["9999999999999 days", "1e300 days", "P99999999999999Y"])
        yield* refused(`${acme}/endpoints/hook/rotate`, { keepOld })
    })
  )
})
