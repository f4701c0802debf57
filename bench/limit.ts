/*
 * The limit: a loop that signs and POSTs with undici and nothing else, as many at once as Petrel
 * may have in flight. What it does in a second is what an engine without durability could do.
 */
import { createHmac, createSecretKey } from "node:crypto"
import { Agent, request } from "undici"

const [url = "", count = "0", atOnce = "100", endpoints = "10"] = process.argv.slice(2)
const key = createSecretKey(Buffer.alloc(32, 7))
const body = Buffer.alloc(1024, "x")
const dispatcher = new Agent({ pipelining: 1 })
let left = Number(count)

const postOne = async (number: number) => {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const id = `evt_${number}`
  const signature = createHmac("sha256", key)
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest("base64")
  const answer = await request(`${url}/${number % Number(endpoints)}`, {
    method: "POST",
    body,
    dispatcher,
    headers: {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": `v1,${signature}`
    }
  })
  await answer.body.dump()
}

const loop = async () => {
  while (left-- > 0) await postOne(left)
}
const started = performance.now()
await Promise.all(Array.from({ length: Number(atOnce) }, loop))
const { system, user } = process.cpuUsage()
process.send?.({ ms: performance.now() - started, cpu: system + user })
process.disconnect?.()
await dispatcher.close()
