/* Publishes events of 1 KB as fast as the broker acknowledges them, over so many types in turn. */
import { connect } from "@nats-io/transport-node"
import { Publisher } from "../src/broker/publisher.ts"

const [url = "", root = "", count = "0", types = "10", atOnce = "512"] = process.argv.slice(2)
const connection = await connect({ servers: url })
const publisher = new Publisher(connection)
const body = Buffer.alloc(1024, "x")
let next = 0

const loop = () =>
  new Promise<void>((resolve, reject) => {
    const more = () => {
      if (next >= Number(count)) return resolve()
      const number = next++
      const subject = `${root}.bench.type${number % Number(types)}`
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
