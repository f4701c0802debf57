/*
 * The hot path of two checkouts of Petrel, side by side: the CPU time of a delivery in the worker, the
 * broker and an ordinary publisher, with nginx as the receiver.
 *
 * Both sides run at the same time, each with a broker of its own, and deliver in turns of about a
 * second. So what is compared is a second apart: on shared cores, whose speed changes within minutes,
 * whole runs one after the other say nothing about differences below a third. Two sides of one state
 * differ by up to 3% in 80 turns.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { Effect } from "effect"
import { runPetrelCommand, startJsPublisher, startWorker } from "./processes.ts"
import { Program } from "./program.ts"
import { startEmptyBroker } from "./rig.ts"
import { quantileOf } from "./spread.ts"

const endpoints = 10
const bytes = 1024

const usage = `The hot path of two checkouts of Petrel, side by side.

  node bench/side-by-side.ts [--pairs N] [--events N] NAME=CHECKOUT NAME=CHECKOUT

  --pairs N    turns of each side that count, after 6 that warm up (default: 80)
  --events N   events of a turn (default: 6,000; after a rest of some seconds V8 discards code)

Needs Linux (/proc) and nginx. Each checkout needs its packages (npm ci).
`

const freePort = async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  return typeof address === "object" ? (address?.port ?? 0) : 0
}

/** Starts nginx, which answers each request with 200, and counts them. */
const startNginx = Effect.acquireRelease(
  Effect.promise(async () => {
    const directory = mkdtempSync(join(tmpdir(), "petrel-bench-nginx-"))
    const port = await freePort()
    const file = join(directory, "nginx.conf")
    writeFileSync(
      file,
      `daemon off; worker_processes 1; pid ${directory}/pid; error_log ${directory}/error.log crit;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 100000000; keepalive_timeout 300s;
  client_body_temp_path ${directory}/body;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location = /status { stub_status; }
    location / { return 200 "ok"; }
  }
}
`
    )
    const child = spawn("nginx", ["-c", file, "-p", directory], { stdio: "inherit" })
    await once(child, "spawn")
    return { child, directory, url: `http://127.0.0.1:${port}` }
  }),
  ({ child, directory }) =>
    Effect.promise(async () => {
      child.kill("SIGTERM")
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit")
      rmSync(directory, { recursive: true, force: true })
    })
)

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms))

/** Counts the requests for deliveries: its own requests for the count are left out. */
const counter = (url: string) => {
  let asked = 0
  return async () => {
    asked++
    const text = await (await fetch(`${url}/status`)).text()
    const [, , requests = "0"] = /\n\s*(\d+) (\d+) (\d+)/.exec(text)?.slice(1) ?? []
    return Number(requests) - asked
  }
}

const programOf = (checkout: string) => join(resolve(checkout), "src/cli/main.ts")

const startSide = Effect.fnUntraced(function* (checkout: string, receiver: string) {
  const broker = yield* startEmptyBroker()
  const petrel = (...args: ReadonlyArray<string>) =>
    runPetrelCommand([...args, "--nats", broker.url, "--json"])
  const worker = yield* Effect.gen(function* () {
    yield* petrel("init")
    for (let number = 0; number < endpoints; number++)
      yield* petrel(
        ...["endpoint", "add", `bench/e${number}`, "--log-level", "error"],
        ...["--url", `${receiver}/${number}`],
        ...["--types", `type${number}`]
      )
    return yield* startWorker(broker.url)
  }).pipe(Effect.provideService(Program, programOf(checkout)))
  const publisher = yield* startJsPublisher(broker.url)
  const pids = { worker: worker.pid, broker: broker.pid, publisher: publisher.pid }
  return { pids, publisher }
})

/** Returns the CPU time of all threads of a process, µs: exact, where the clock ticks of a turn are few. */
const cpuOf = (pid: number) =>
  readdirSync(`/proc/${pid}/task`).reduce((micros, thread) => {
    const [nanos] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")
    return micros + Number(nanos) / 1000
  }, 0)

type Part = "worker" | "broker" | "publisher"
type Turn = Record<Part, number>

const measure = Effect.fnUntraced(function* (
  sides: ReadonlyArray<readonly [name: string, checkout: string]>,
  pairs: number,
  events: number
) {
  const nginx = yield* startNginx
  const count = counter(nginx.url)
  const started = yield* Effect.forEach(sides, ([, checkout]) => startSide(checkout, nginx.url))
  const turn = async ({ pids, publisher }: (typeof started)[number]): Promise<Turn> => {
    const read = (): Turn => ({
      worker: cpuOf(pids.worker),
      broker: cpuOf(pids.broker),
      publisher: cpuOf(pids.publisher)
    })
    const until = (await count()) + events
    const before = read()
    await publisher.publish({
      subject: "events.bench.type*",
      subjects: endpoints,
      count: events,
      bytes
    })
    while ((await count()) < until) await pause(20)
    // What follows the last answers belongs to the turn.
    await pause(200)
    const after = read()
    const of = (part: Part) => (after[part] - before[part]) / events
    return { worker: of("worker"), broker: of("broker"), publisher: of("publisher") }
  }
  const taken = started.map((): Array<Turn> => [])
  yield* Effect.promise(async () => {
    for (let pair = -6; pair < pairs; pair++) {
      const order = [...started.entries()]
      for (const [side, one] of pair % 2 === 0 ? order : order.reverse()) {
        const spent = await turn(one)
        if (pair >= 0) taken[side]?.push(spent)
      }
      process.stderr.write(pair < 0 ? "w" : ".")
    }
  })
  process.stderr.write("\n")
  const [first = [], second = []] = taken
  const columns = (texts: ReadonlyArray<string>) => texts.map((text) => text.padStart(16)).join("")
  const line = (title: string, of: (turn: Turn) => number) => {
    const ratios = second.map((turn, n) => of(turn) / of(first[n] ?? turn))
    const medians = taken.map((turns) => quantileOf(turns.map(of), 0.5).toFixed(1))
    const [low, middle = "", high] = [0.25, 0.5, 0.75].map((q) => quantileOf(ratios, q).toFixed(2))
    return `${title.padEnd(10)}${columns([...medians, middle])}  (${low} to ${high})\n`
  }
  return (
    `µs of CPU a delivery, median of ${pairs} turns of ${events} events; ratio of neighbours, median (quartiles)\n` +
    `${"".padEnd(10)}${columns([...sides.map(([name]) => name), "ratio"])}\n` +
    line("worker", ({ worker }) => worker) +
    line("broker", ({ broker }) => broker) +
    line("publisher", ({ publisher }) => publisher) +
    line("together", ({ broker, publisher, worker }) => worker + broker + publisher)
  )
}, Effect.scoped)

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    pairs: { type: "string", default: "80" },
    events: { type: "string", default: "6000" },
    help: { type: "boolean", short: "h", default: false }
  }
})
const sides = positionals.map((given) => {
  const at = given.indexOf("=")
  return [given.slice(0, at), given.slice(at + 1)] as const
})

/** Returns what is wrong with the arguments, in one sentence. */
const problem = (): string | undefined => {
  if (sides.length !== 2 || sides.some(([name]) => name === ""))
    return "Two sides are needed, each as NAME=CHECKOUT."
  const missing = sides.find(([, checkout]) => !existsSync(programOf(checkout)))
  if (missing !== undefined) return `There is no ${programOf(missing[1])}.`
  const wrong = [values.pairs, values.events].find((text) => !/^[1-9]\d{0,5}$/.test(text))
  return wrong === undefined ? undefined : `"${wrong}" is not a whole number from 1 to 999999.`
}

const wrong = problem()
if (values.help) process.stdout.write(usage)
else if (wrong !== undefined) {
  process.stderr.write(`${wrong}\n\n${usage}`)
  process.exitCode = 2
} else
  process.stdout.write(
    await Effect.runPromise(measure(sides, Number(values.pairs), Number(values.events)))
  )
