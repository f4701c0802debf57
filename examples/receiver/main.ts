/*
 * Starts `petrel dev` and the shop, publishes one paid invoice, lets the shop die twice while it takes it, sends it again
 * by hand, and counts the parcels. Ends with 0 if there is one.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import process from "node:process"
import { createInterface } from "node:readline"
import { setTimeout } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { httpClient } from "petrel/client"

const { postgres } = parseArgs({ options: { postgres: { type: "string" } } }).values
const manifest = fileURLToPath(import.meta.resolve("petrel/package.json"))
const cli = join(dirname(manifest), JSON.parse(await readFile(manifest, "utf8")).bin.petrel)
const folder = await mkdtemp(join(tmpdir(), "petrel-shop-"))
const running = new Set<ChildProcess>()
const say = (who: string, text: string) => console.log(`${who.padEnd(7)} ${text}`)

const start = (
  args: ReadonlyArray<string>,
  env: NodeJS.ProcessEnv,
  onLine: (line: string) => void
) => {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"]
  })
  running.add(child)
  child.once("exit", () => running.delete(child))
  createInterface(child.stdout).on("line", onLine)
  return child
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  return typeof address === "object" && address !== null ? address.port : 0
}

/** Starts `petrel dev`. Returns where its API is, and the token for it. */
const startPetrel = () =>
  new Promise<{ url: string; token: string }>((resolve, reject) => {
    const data = join(folder, "petrel")
    const child = start([cli, "dev", "--nats-port", "0", "--data", data, "--quiet"], {}, (line) => {
      const [, url] = /HTTP API is at (\S+)/.exec(line) ?? []
      if (url === undefined) return
      readFile(join(data, "api-token"), "utf8").then(
        (token) => resolve({ url, token: token.trim() }),
        reject
      )
    })
    child.once("exit", (code) => reject(new Error(`petrel dev ended with ${code}`)))
  })

let isOver = false

/** Runs the shop, and starts it again when it dies: it dies at each of these moments once. */
const runShop = (env: NodeJS.ProcessEnv, [dies, ...others]: ReadonlyArray<string>): void => {
  const child = start([join(import.meta.dirname, "shop.ts")], { ...env, SHOP_DIES: dies }, (line) =>
    say("shop", line)
  )
  // All that it has printed is read by then.
  child.once("close", (_, signal) => {
    if (signal !== "SIGKILL" || isOver) return
    say("shop", "is started again")
    runShop(env, others)
  })
}

/** Ends what runs, and removes what it stored. */
const stop = async (): Promise<void> => {
  isOver = true
  for (const child of running) {
    const exited = once(child, "exit")
    child.kill("SIGINT")
    await exited
  }
  await rm(folder, { recursive: true, force: true })
}
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => stop().finally(() => process.exit(130)))

try {
  const petrel = httpClient({ ...(await startPetrel()), tenant: "acme" })
  const shop = `http://127.0.0.1:${await freePort()}`
  const { secret } = await petrel.endpoints.put({
    id: "shop",
    url: shop,
    types: ["invoice.paid"],
    // The usual circuit opens after some failures and waits for 30 s, and the usual waits are minutes.
    circuit: { failures: 1_000, rate: "none" },
    retry: {
      backoff: { kind: "fixed", delay: "500ms" },
      ...{ jitter: "none", maxAttempts: 100, window: "10 minutes" }
    }
  })
  runShop(
    {
      PORT: new URL(shop).port,
      SHOP_FILE: join(folder, "shop.db"),
      WEBHOOK_SECRET: secret,
      ...(postgres !== undefined && { DATABASE_URL: postgres })
    },
    ["before the commit", "after the commit, before the answer"]
  )
  const { id } = await petrel.publish({ type: "invoice.paid", data: { order: 42 } })
  const delivery = `${id}.shop`
  say("petrel", "has an invoice.paid of order 42 to deliver")

  /** Waits until so many rounds of the delivery have ended with a 2xx. */
  const untilDelivered = async (rounds: number) => {
    for (;;) {
      const found = await petrel.deliveries.delivery({ delivery }).catch(() => undefined)
      const ended = found?.rounds.filter(({ state }) => state === "delivered") ?? []
      if (ended.length >= rounds) return ended.at(-1)
      await setTimeout(100)
    }
  }
  const delivered = await untilDelivered(1)
  say("petrel", `got a 2xx at attempt ${delivered?.lastAttempt}`)
  say("petrel", "sends it once more, as a person asks for")
  await petrel.attempts.resend({ delivery })
  await untilDelivered(2)
  const parcels = await (await fetch(shop)).json()
  say("", `parcels: ${JSON.stringify(parcels)}`)
  process.exitCode = JSON.stringify(parcels) === "[42]" ? 0 : 1
} finally {
  await stop()
}
