import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { endpoint, history, publish, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** A receiver that sends every webhook to the page where people log in, which takes anything. */
const behindLogin = Effect.gen(function* () {
  const login = yield* receiver({ answer: { status: 200, body: "<h1>Log in</h1>" } })
  const hook = yield* receiver({
    answer: { status: 302, headers: { location: `${login.url}/login?next=hook` } }
  })
  return { hook, login, to: `${login.url}/login` }
})

describe("a receiver that redirects", () => {
  scenario("has not taken the delivery, where redirects are not followed", () =>
    Effect.gen(function* () {
      const { hook, login, to } = yield* behindLogin
      yield* endpoint({ url: hook.url, redirects: 0 })
      const facts = yield* history
      yield* worker()
      yield* publish("invoice.paid")
      yield* facts.count("dead-lettered", 1)
      const [dead] = facts.of("dead-lettered")
      assert.deepInclude(dead, { status: 302, reason: "permanent" })
      const [failed] = facts.of("attempt-failed")
      assert.strictEqual(failed?.response?.headers.location, to)
      assert.lengthOf(login.requests, 0)
      assert.lengthOf(facts.of("delivered"), 0)
    })
  )

  scenario("leads to another origin only where the endpoint names it, and the fact says so", () =>
    Effect.gen(function* () {
      const { hook, login, to } = yield* behindLogin
      const redirectsTo = [new URL(login.url).origin] as const
      yield* endpoint({ id: "home", url: hook.url, types: ["home"], redirects: 3 })
      yield* endpoint({ id: "away", url: hook.url, types: ["away"], redirects: 3, redirectsTo })
      const facts = yield* history
      yield* worker()
      yield* publish("home")
      yield* publish("away")
      yield* facts.count("dead-lettered", 1)
      yield* facts.count("delivered", 1)
      const [dead] = facts.of("dead-lettered")
      assert.deepInclude(dead, { endpoint: "home", status: 302 })
      assert.strictEqual(facts.of("attempt-failed")[0]?.error?.class, "redirect")
      const [delivered] = facts.of("delivered")
      assert.deepInclude(delivered, { endpoint: "away", status: 200 })
      assert.deepStrictEqual(delivered?.redirects, [{ status: 302, to }])
      assert.lengthOf(login.requests, 1)
    })
  )
})
