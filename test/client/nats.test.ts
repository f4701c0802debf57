import { headers } from "@nats-io/transport-node"
import { assert, describe, it } from "vitest"
import { type NatsConnection, natsClient, PetrelProblem } from "../../src/client/client.ts"
import { rejected } from "./answering.ts"

/** A connection that answers nothing, and counts what it was asked. */
const connection = () => {
  const asked: Array<string> = []
  const one: NatsConnection = {
    info: { max_payload: 1_000 },
    request: async (subject) => {
      asked.push(subject)
      throw new Error("no responders")
    }
  }
  return { asked, petrel: natsClient({ connection: one, headers, tenant: "acme" }) }
}

describe("a client over NATS", () => {
  it("says at once what can never be sent, and repeats none of it", async () => {
    const { asked, petrel } = connection()
    const since = new Date(Number.NaN)
    const calls = [
      petrel.log.list({ since }).page(),
      petrel.endpoints.get({ id: "a", tenant: "a b" }),
      petrel.endpoints.put({ id: "a", url: "x", maxInFlight: 5n } as never),
      petrel.endpoints.patch({ id: "a" }, { ifMatch: "1\r\n" })
    ]
    const messages = await Promise.all(calls.map(async (one) => String(await rejected(one))))
    assert.deepStrictEqual(messages.slice(0, 3), [
      "TypeError: since of log.list is an invalid date",
      'TypeError: endpoints.get: no tenant has the name "a b"',
      "TypeError: Do not know how to serialize a BigInt"
    ])
    // The words are those of the program's own headers.
    assert.match(String(messages[3]), /^InvalidArgumentError: .*cannot contain/)
    assert.deepStrictEqual(asked, [])
  })

  it("waits as long as a timer can, and no longer", async () => {
    const waits: Array<number> = []
    const one: NatsConnection = {
      request: async (_, __, { timeout }) => {
        waits.push(timeout)
        throw new Error("no responders")
      }
    }
    const timeoutMs = 2 ** 31 - 1
    const petrel = natsClient({
      connection: one,
      headers,
      tenant: "acme",
      timeoutMs,
      retryForMs: 0
    })
    await rejected(petrel.endpoints.get({ id: "a" }))
    assert.deepStrictEqual(waits, [timeoutMs])
  })

  it("refuses what the broker would not pass on, as a console does over HTTP", async () => {
    const { asked, petrel } = connection()
    const large = { type: "a", id: "large", data: "x".repeat(1_000) }
    const refused = await rejected(petrel.publish(large))
    assert.instanceOf(refused, PetrelProblem)
    assert.deepInclude(refused, { code: "too-large", status: 413 })
    const summary = await petrel.publishAll([large])
    assert.deepInclude(summary, { stored: 0, failed: 1 })
    assert.deepStrictEqual(asked, [])
  })
})
