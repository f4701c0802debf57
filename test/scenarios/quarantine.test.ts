import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { quarantine, releaseQuarantined } from "../../src/intake/quarantine.ts"
import { startConsole } from "../kit/console.ts"
import { eventually, history } from "../kit/engine.ts"
import { stripeSource } from "../kit/gateway.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const put = (tenant: string, body: string, more: object = {}) =>
  quarantine(
    tenant,
    {
      ...{ source: "stripe", provider: "stripe", problem: "no JSON", contentType: "text/plain" },
      ...{ headers: {}, method: "POST", url: `http://127.0.0.1/in/${tenant}/stripe` },
      reason: "unreadable",
      ...more
    },
    Buffer.from(body)
  )

const path = "/v1/tenants/acme/quarantine"

describe("several in quarantine, over HTTP", () => {
  scenario("are released and discarded by number, source and reason, and no other tenant's", () =>
    Effect.gen(function* () {
      const facts = yield* history
      yield* stripeSource()
      const { ask, token: make } = yield* startConsole()
      const token = yield* make({ scopes: ["payloads:read", "events:publish"] })
      for (const body of ["one", "two", "three"]) yield* put("acme", body)
      yield* put("acme", "github", { source: "github" })
      const collided = { reason: "id-collision", id: "evt_1", type: "invoice.paid" } as const
      yield* put("acme", "again", collided)
      yield* put("globex", "theirs")
      const numbers = Effect.map(ask(path, { token }), ({ json }) =>
        (json.quarantined as ReadonlyArray<{ readonly number: number }>).map((one) => one.number)
      )
      const all = yield* numbers
      const [one = 0, two = 0, three = 0, github = 0, again = 0] = all
      const post = (what: "release" | "discard", body: object) =>
        ask(`${path}-${what}`, { method: "POST", token, body })

      for (const [body, message] of [
        [{}, /say which/],
        [{ all: true, source: "stripe" }, /cannot be combined/],
        [{ number: [] }, /number/],
        [{ reason: "bad" }, /reason/]
      ] as const) {
        const refused = yield* post("discard", body)
        assert.strictEqual(refused.status, 400)
        assert.match(JSON.stringify(refused.json), message)
      }
      for (const [at, body] of [
        [`${path}-release`, { all: true, type: "" }],
        [`${path}/${one}/release`, { type: "" }]
      ] as const) {
        const refused = yield* ask(at, { method: "POST", token, body })
        assert.strictEqual(refused.status, 400, refused.text)
        assert.match(JSON.stringify(refused.json.errors), /"type".*must not be empty/)
      }
      assert.deepStrictEqual(yield* numbers, all)

      // What its provider cannot read stays, and keeps nothing from what can be released.
      const released = yield* post("release", { source: "stripe" })
      assert.strictEqual(released.status, 200)
      assert.deepStrictEqual(
        (released.json.released as ReadonlyArray<{ readonly number: number }>).map(
          ({ number }) => number
        ),
        [again]
      )
      const left = released.json.left as ReadonlyArray<{ number: number; problem: string }>
      assert.deepStrictEqual(
        left.map(({ number }) => number),
        [one, two, three]
      )
      assert.notInclude(JSON.stringify(left), "petrel quarantine")

      // Without the source it is not the provider's fault.
      const gone = yield* post("release", { source: "github" })
      assert.deepStrictEqual(gone.json.left, [
        {
          number: github,
          problem: `${github} cannot be read without its source github, which is no longer there: add that again, give it a type, or discard it`
        }
      ])

      const typed = yield* post("release", { number: [two, 999_999], type: "thing.unknown" })
      assert.deepInclude(typed.json.released, {
        ...{ number: two, tenant: "acme", source: "stripe" },
        events: (typed.json.released as ReadonlyArray<{ readonly events: unknown }>)[0]?.events
      })
      assert.match(JSON.stringify(typed.json.left), /999999/)
      const byReason = yield* post("discard", { source: "stripe", reason: "unreadable" })
      assert.lengthOf(byReason.json.discarded as ReadonlyArray<unknown>, 2)
      assert.deepStrictEqual(yield* numbers, [github])
      yield* post("discard", { all: true })
      assert.deepStrictEqual(yield* numbers, [])

      const theirs = yield* ask("/v1/tenants/globex/quarantine-discard", {
        ...{ method: "POST", token, body: { all: true } }
      })
      assert.strictEqual(theirs.status, 403)
      const operator = yield* make({ tenant: "*" })
      const there = yield* ask("/v1/tenants/globex/quarantine", { token: operator })
      assert.lengthOf(there.json.quarantined as ReadonlyArray<unknown>, 1)
      yield* facts.count("quarantine-released", 2)
      yield* facts.count("quarantine-discarded", 3)
    })
  )

  scenario("are as many as came in, though they have the same bytes and no id", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const { ask, token: make } = yield* startConsole()
      const token = yield* make({ scopes: ["payloads:read", "events:publish"] })
      // A sender that has no answer sends the same request again.
      for (const delivery of ["d1", "d2", "d1"])
        yield* put("acme", "the same", { headers: { "x-github-delivery": delivery } })
      const { json } = yield* ask(path, { token })
      const there = json.quarantined as ReadonlyArray<{
        readonly number: number
        readonly headers: Readonly<Record<string, string>>
      }>
      assert.lengthOf(there, 2)
      const released = yield* ask(`${path}-release`, {
        ...{ method: "POST", token, body: { all: true, type: "push" } }
      })
      const ids = (
        released.json.released as ReadonlyArray<{ readonly events: ReadonlyArray<{ id: string }> }>
      ).flatMap(({ events }) => events.map(({ id }) => id))
      assert.strictEqual(new Set(ids).size, 2, released.text)
      const { names, streamInfo } = yield* Broker
      yield* eventually(
        streamInfo("count the events", names.events),
        ({ state }) => state.messages === 2
      )
    })
  )

  scenario("keep what endpoints may get of their request", () =>
    Effect.gen(function* () {
      yield* stripeSource()
      const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
      const headers = { "x-github-event": "push", "user-agent": "Hookshot", traceparent }
      const { seq } = yield* put("acme", "{}", { headers })
      yield* releaseQuarantined("acme", seq, { type: "push", read: () => undefined }, "ana")
      const { names, readMessage } = yield* Broker
      const stored = yield* readMessage("look at the event", names.intake, {
        last_by_subj: `${names.subjects.incoming("acme", "stripe", "*")}.>`
      })
      assert.strictEqual(stored?.header.get("x-github-event"), "push")
      assert.strictEqual(stored?.header.get("traceparent"), traceparent)
      assert.strictEqual(stored?.header.get("user-agent"), "")
    })
  )
})
