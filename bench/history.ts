/*
 * A history as a worker would leave it, made up: what an audit reads, without the requests.
 *   node bench/history.ts <nats url> <events> [endpoints per event, default 1] [share that fails once, default 0.05]
 * Needs an installation (`petrel init`). Stores events of 64 bytes, their plans and their ends.
 */
import { connect } from "@nats-io/transport-node"
import { Publisher } from "../src/broker/publisher.ts"
import { makeNames } from "../src/domain/names.ts"

const [url = "", count = "0", fanOut = "1", failing = "0.05"] = process.argv.slice(2)
const events = Number(count)
const endpoints = Array.from({ length: Number(fanOut) }, (_, n) => `endpoint-${n}`)
const names = makeNames()
const connection = await connect({ servers: url })
const publisher = new Publisher(connection, 60_000)
const body = Buffer.alloc(64, "x")
const deadline = Date.now() + 72 * 3_600_000

const publish = (subject: string, data: Uint8Array | string, id: string) =>
  new Promise<void>((resolve, reject) =>
    publisher.send(subject, data, [["Nats-Msg-Id", id]], (result) =>
      result instanceof Error ? reject(result) : resolve()
    )
  )

const tell = (kind: string, mood: "ok" | "failure", endpoint: string, fact: object, id: string) => {
  const record = { v: 1, kind, at: Date.now(), tenant: "bench", endpoint, ...fact }
  return publish(names.subjects.fact("bench", endpoint, mood, kind), JSON.stringify(record), id)
}

const plan = {
  part: 0,
  last: true,
  endpoints: endpoints.map((id) => ({ id, generation: "bench", revision: 1, deadline })),
  skipped: []
}

let next = 0
const one = async () => {
  while (next < events) {
    const seq = ++next
    const event = `bench.event-${seq}`
    const about = { event, eventSeq: seq, type: "invoice.paid", worker: "bench-1" }
    await tell("routed", "ok", "_", { ...about, plan }, `routed.${seq}.0`)
    for (const [n, endpoint] of endpoints.entries()) {
      const of = {
        ...about,
        delivery: `${event}.${endpoint}`,
        round: "0",
        from: { stream: names.deliveries(n % 8), seq },
        deadline,
        durationMs: 12.5
      }
      const fails = Math.random() < Number(failing)
      if (fails)
        await tell(
          "attempt-failed",
          "failure",
          endpoint,
          { ...of, attempt: 1, status: 503, nextAttemptAt: Date.now() + 1_000, wait: "nak" },
          `f.${seq}.${n}`
        )
      const response = { headers: { "content-type": "application/json" }, body: "ok", bytes: 2 }
      const end = { ...of, attempt: fails ? 2 : 1, status: 200, firstByteMs: 11.2, response }
      await tell("delivered", "ok", endpoint, end, `d.${seq}.${n}`)
    }
  }
}

let stored = 0
const store = async () => {
  while (stored < events) {
    const seq = ++stored
    await publish(`${names.eventRoot}.bench.invoice.paid`, body, `bench.event-${seq}`)
  }
}

const many = (loop: () => Promise<void>) => Promise.all(Array.from({ length: 1_024 }, loop))
await many(store)
await many(one)
publisher.close()
await connection.close()
