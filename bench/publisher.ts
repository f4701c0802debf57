/*
 * Publishes events of 1 KB as fast as the broker acknowledges them, to so many subjects in turn:
 * `*` in the pattern stands for their numbers.
 */
import { connect } from "@nats-io/transport-node"
import { Publisher } from "../src/broker/publisher.ts"

const [url = "", pattern = "", count = "0", subjects = "10", atOnce = "512"] = process.argv.slice(2)
const connection = await connect({ servers: url })
const publisher = new Publisher(connection)
const body = Buffer.alloc(1024, "x")
let next = 0

const loop = () =>
  new Promise<void>((resolve, reject) => {
    const more = () => {
      if (next >= Number(count)) return resolve()
      const number = next++
      const subject = pattern.replace("*", String(number % Number(subjects)))
      publisher.send(
        subject,
        body,
        [["Nats-Msg-Id", `bench-${process.pid}-${number}`]],
        (result) => (result instanceof Error ? reject(result) : more())
      )
    }
    more()
  })

await Promise.all(Array.from({ length: Number(atOnce) }, loop))
publisher.close()
await connection.close()
