import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { type Runtime, runModule } from "../kit/runtimes.ts"

/** A program that receives webhooks with the installed package, through a real socket, and prints what it did. */
const program = `import { createHmac } from "node:crypto"
import { createServer } from "node:http"
import { memoryStore, petrel, receiver } from "petrel/receiver"
const key = Buffer.from("a secret of the tests of the kit")
const hooks = receiver({
  store: memoryStore(),
  sources: { petrel: petrel({ secrets: ["whsec_" + key.toString("base64")] }) },
  log: () => undefined
})
const effects = []
let worked
const isWorked = new Promise((resolve) => { worked = resolve })
hooks.once("invoice.paid", (_, event) => { effects.push(event.key + " " + event.data.total) })
hooks.process("invoice.voided", (_, event) => { effects.push(event.key); worked() })
hooks.start()
const server = createServer(hooks.node("petrel"))
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
const post = async (id, type, key) => {
  const [at, body] = [String(Math.floor(Date.now() / 1000)), '{"total":12}']
  const signature = createHmac("sha256", key).update(id + "." + at + "." + body).digest("base64")
  const headers = {
    "webhook-id": id, "webhook-timestamp": at, "webhook-signature": "v1," + signature,
    "webhook-event-type": type, "content-type": "application/json"
  }
  const response = await fetch("http://127.0.0.1:" + server.address().port, { method: "POST", body, headers })
  return response.status + " " + (await response.text()).trim()
}
const answers = [
  await post("e1", "invoice.paid", key), await post("e1", "invoice.paid", key),
  await post("e2", "invoice.voided", key), await post("e3", "invoice.paid", Buffer.from("another"))
]
await isWorked
await hooks.stop()
const { byState } = await hooks.stats()
console.log(JSON.stringify({ answers, effects, done: byState.done }))
process.exit(0)
`

/** What it prints. */
export const receivedOnce = {
  answers: ["200 done", "200 duplicate", "200 stored", "401 signature-mismatch"],
  effects: ["e1 12", "e2"],
  done: 2
}

/** Runs it in a project in which the package is installed. */
export const receiveInstalled = async (runtime: Runtime, project: string): Promise<unknown> => {
  await writeFile(join(project, "receive.js"), program)
  return runModule(runtime, project, "receive.js")
}
