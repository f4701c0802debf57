import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Client, httpClient } from "../../src/client/client.ts"
import { clientOf, inOrder, json, problem, rejected } from "./answering.ts"

const get = (petrel: Client) => petrel.endpoints.get({ id: "a" })

describe("a client over HTTP", () => {
  it.live("says at once what can never be sent, and repeats none of it", () =>
    Effect.gen(function* () {
      const { petrel, requests, url } = yield* clientOf(json({}))
      const broken = httpClient({ url, tenant: "acme", token: "a\nb" })
      const since = new Date(Number.NaN)
      const messages = yield* Effect.promise(async () =>
        Promise.all(
          [
            get(broken),
            petrel.log.list({ since }).page(),
            petrel.jobs.replay({ endpoint: "a", since }),
            petrel.endpoints.put({ id: "a", url, maxInFlight: 5n } as never),
            petrel.publishRaw({ type: "a", body: "1", contentType: "text/€" }),
            petrel.endpoints.patch({ id: "a" }, { ifMatch: "1\r\n" })
          ].map(async (asked) => String(await rejected(asked)))
        )
      )
      assert.deepStrictEqual(messages, [
        "TypeError: endpoints.get: the token has a character that no header can have",
        "TypeError: since of log.list is an invalid date",
        "TypeError: since of jobs.replay is an invalid date",
        "TypeError: Do not know how to serialize a BigInt",
        "TypeError: events.publishRaw: content-type has a character that no header can have",
        "TypeError: endpoints.patch: if-match has a character that no header can have"
      ])
      assert.lengthOf(requests, 0)
    })
  )

  it("refuses a URL that is none of a server, and shows no password of one", () => {
    const made = (url: string) => () => httpClient({ url, tenant: "acme" })
    for (const url of [
      "http://ann:s3cret@127.0.0.1",
      "http://127.0.0.1:99999",
      "http://127.0.0.1?x=1"
    ])
      assert.throws(made(url), /^url must be of http or https, .*, without a user, \? or #$/)
  })

  it.live("passes on what its function for tokens throws, and asks that for each try", () =>
    Effect.gen(function* () {
      const tokens = ["ptl_1", "ptl_2"]
      const sealed = new Error("the vault is sealed")
      const token = () => {
        const next = tokens.shift()
        if (next === undefined) throw sealed
        return next
      }
      const soon = problem(503, "unavailable", { "retry-after": "0" })
      const { requests, url } = yield* clientOf(inOrder(soon, json({ id: "a" })))
      const petrel = httpClient({ url, tenant: "acme", token })
      yield* Effect.promise(() => get(petrel))
      assert.strictEqual(yield* Effect.promise(() => rejected(get(petrel))), sealed)
      assert.deepStrictEqual(
        requests.map(({ headers }) => headers.authorization),
        ["Bearer ptl_1", "Bearer ptl_2"]
      )
    })
  )

  it.live("ends in time, and with its signal, while its function for tokens returns none", () =>
    Effect.gen(function* () {
      const { requests, url } = yield* clientOf(json({}))
      const token = () => new Promise<string>(() => undefined)
      const petrel = httpClient({ url, tenant: "acme", token, retryForMs: 0, timeoutMs: 20 })
      const late = yield* Effect.promise(() => rejected(get(petrel)))
      assert.deepInclude(late, { name: "NoAnswer" })
      const controller = new AbortController()
      const asked = rejected(petrel.endpoints.get({ id: "a" }, { signal: controller.signal }))
      controller.abort("enough")
      assert.strictEqual(yield* Effect.promise(() => asked), "enough")
      assert.lengthOf(requests, 0)
    })
  )
})
