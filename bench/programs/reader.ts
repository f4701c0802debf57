/*
 * Reads streams from beginning to end with the NATS client and discards the messages.
 *
 * Usage: `reader.ts <nats url>`, then jobs as messages.
 */
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { now } from "./clock.ts"

export interface Reading {
  readonly streams: ReadonlyArray<string>
}

/** The result: messages read, and the time it took in ms. */
export interface ReadAll {
  readonly messages: number
  readonly ms: number
}

const connection = await connect({ servers: process.argv[2] ?? "" })
const js = jetstream(connection)
const manager = await jetstreamManager(connection)

const readStream = async (stream: string): Promise<number> => {
  const { state } = await manager.streams.info(stream)
  if (state.messages === 0) return 0
  const consumer = await js.consumers.get(stream)
  const messages = await consumer.consume({ max_messages: 5_000 })
  let read = 0
  for await (const message of messages) {
    read++
    if (message.seq === state.last_seq) break
  }
  return read
}

process.on("message", async ({ streams }: Reading) => {
  const begun = now()
  let messages = 0
  for (const stream of streams) messages += await readStream(stream)
  const all: ReadAll = { messages, ms: now() - begun }
  process.send?.(all)
})
process.once("disconnect", () => process.exit(0))
process.send?.({})
