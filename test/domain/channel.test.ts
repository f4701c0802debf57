import { assert, describe, it } from "@effect/vitest"
import { channelOf } from "../../src/domain/origin.ts"

const of = (headers: Readonly<Record<string, string>>) => channelOf((name) => headers[name])

describe("how an event came", () => {
  it.each([
    [{ "nats-stream-source": "ORDERS 12 > > orders.>" }, "stream:ORDERS"],
    [{ "nats-stream-source": "ORDERS 12", "petrel-channel": "http" }, "stream:ORDERS"],
    [{ "petrel-channel": "http" }, "http"],
    [{ "petrel-channel": "nats-api" }, "nats-api"],
    [{ "petrel-channel": "something else" }, undefined],
    [{}, undefined]
  ])("is told by %j: %s", (headers, channel) => {
    assert.strictEqual(of(headers), channel)
  })
})
