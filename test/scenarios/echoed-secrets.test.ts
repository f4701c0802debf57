import { assert, describe } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { readFacts } from "../../src/history/read.ts"
import { endpoint, history, publish, publishTo, quickRetry, secret, worker } from "../kit/engine.ts"
import type { Received } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

const password = 'hun"ter/2'
const basic = Buffer.from(`petrel:${password}`).toString("base64")
const own = { authorization: `Basic ${basic}`, "x-api-key": 'key-"7f/3\\9c21' }
const once = quickRetry({ maxAttempts: 1 })

/** As debug pages of frameworks do: all headers as JSON, the login that was refused, and in headers. */
const echo = (status: number) => (request: Received) => ({
  status,
  headers: { "x-request-id": `for ${request.headers["x-api-key"]}`, server: own.authorization },
  body: JSON.stringify({ headers: request.headers, refused: password })
})

/** The same where the end of what is kept, 1 KiB, is in the middle of a secret. */
const cut = ({ headers }: Received) => ({ body: `${"x".repeat(1010)}${headers["x-api-key"]}` })

/** What of the answers may not be anywhere. */
const forbidden = (requests: ReadonlyArray<Received>) => [
  basic,
  ...["hun", "key-", "7f/3"],
  secret,
  ...requests.flatMap(({ headers }) =>
    ["webhook-signature", "x-hub-signature-256", "petrel-signature"].flatMap((name) =>
      typeof headers[name] === "string" ? (headers[name].match(/[\w+/]{16,}/g) ?? []) : []
    )
  )
]

/** The facts of a tenant as they are stored. */
const stored = (tenant: string) =>
  Effect.map(Stream.runCollect(readFacts({ tenant })), (facts) => facts.map(({ record }) => record))

describe("an answer that repeats the request", () => {
  scenario("leaves no secret in the history or on the failure subjects", () =>
    Effect.gen(function* () {
      const { connection, names } = yield* natsClients
      const to = yield* receiver({ answer: echo(500) })
      const facts = yield* history
      const heard: Array<string> = []
      const listening = connection.subscribe(names.subjects.failures("acme", "*", "*"), {
        callback: (_, message) => {
          heard.push(message.string())
        }
      })
      yield* Effect.promise(() => connection.flush())
      for (const sign of ["standard", "stripe", "github"] as const)
        yield* endpoint({ id: sign, url: to.url, sign, headers: own, retry: once })
      yield* endpoint({ id: "taken", url: `${to.url}/taken`, headers: own })
      yield* endpoint({ id: "cut", url: `${to.url}/cut`, headers: own })
      to.answer((request) =>
        request.path === "/cut"
          ? cut(request)
          : echo(request.path === "/taken" ? 200 : 500)(request)
      )
      // After the endpoints, so that it knows all of them when the event comes.
      yield* worker()
      yield* publish("thing.happened")
      yield* facts.until(
        () => facts.of("dead-lettered").length === 3 && facts.of("delivered").length === 2
      )
      yield* Effect.promise(() => connection.flush())
      listening.unsubscribe()
      const kept = JSON.stringify(yield* stored("acme"))
      assert.isAbove(heard.length, 0)
      assert.include(kept, "[redacted]")
      for (const text of forbidden(to.requests)) {
        assert.notInclude(kept, text)
        assert.notInclude(heard.join("\n"), text)
      }
    })
  )

  scenario("is kept as far as its tenant wants it", () =>
    Effect.gen(function* () {
      const to = yield* receiver({ answer: { status: 503, body: "a person's name" } })
      const facts = yield* history
      const levels = ["none", "status", "headers", "body"] as const
      for (const level of levels)
        yield* endpoint({ tenant: `t-${level}`, url: to.url, retry: once })
      yield* worker({
        answers: (tenant) => levels.find((level) => tenant === `t-${level}`) ?? "body"
      })
      for (const level of levels) yield* publishTo(`t-${level}.thing.happened`)
      yield* facts.count("dead-lettered", 4)
      const kept = facts.of("attempt-failed").map(({ response, status, tenant }) => [
        tenant,
        {
          status,
          headers: response === undefined ? 0 : Object.keys(response.headers).length,
          body: response?.body
        }
      ])
      assert.deepStrictEqual(Object.fromEntries(kept), {
        "t-none": { status: undefined, headers: 0, body: undefined },
        "t-status": { status: 503, headers: 0, body: undefined },
        "t-headers": { status: 503, headers: 1, body: "" },
        "t-body": { status: 503, headers: 1, body: "a person's name" }
      })
      // Not in the whole text: a time of day or a duration may contain these digits.
      for (const fact of yield* stored("t-none")) {
        assert.notProperty(fact, "status")
        for (const value of Object.values(fact))
          if (typeof value === "string") assert.notMatch(value, /\b503\b/)
      }
    })
  )
})
