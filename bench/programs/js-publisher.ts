/*
 * Publishes events as an ordinary application does: with `js.publish` of the NATS client, from many
 * loops, each of which awaits its acknowledgement.
 *
 * Usage: `js-publisher.ts <nats url>`, then jobs as messages.
 */
import { jetstream } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import type { Publishing } from "./publisher.ts"

const loops = 256

const connection = await connect({ servers: process.argv[2] ?? "" })
const js = jetstream(connection)

const publish = async ({ bytes, count, subject, subjects }: Publishing) => {
  const body = Buffer.from(JSON.stringify({ text: "x".repeat(bytes - 11) }))
  let sent = 0
  const loop = async () => {
    while (sent < count) await js.publish(subject.replace("*", String(sent++ % subjects)), body)
  }
  await Promise.all(Array.from({ length: loops }, loop))
  process.send?.({})
}

process.on("message", (job: Publishing) => void publish(job))
process.once("disconnect", () => process.exit(0))
process.send?.({})
