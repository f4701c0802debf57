/*
 * How fast the pages of a running console are, in Debian's Chromium:
 *
 *     node test/ui/measure.ts LINK [--tenant acme] [--times 9]
 *
 * LINK is one that logs in (`petrel login`). Prints medians and the slowest, ms: from the request of a
 * page until its rows are painted (the first view), and how long 1,000 rows take from their answer to
 * the next frame, with the CPU time of the page's thread, which says more on a machine that others use.
 * The rows are the console's own, repeated.
 */
import { parseArgs } from "node:util"
import { chromium } from "playwright-core"

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    tenant: { type: "string", default: "acme" },
    times: { type: "string", default: "9" }
  }
})
const [link] = positionals
if (link === undefined) throw new Error("give a link that logs in: petrel login prints one")
const { origin } = new URL(link)
const times = Number(values.times)
const tenant = encodeURIComponent(values.tenant)

const many = 1_000

/** How long something took, and the CPU time of the page's thread meanwhile, ms. */
interface Taken {
  readonly ms: number
  readonly cpuMs: number
}

const say = (what: string, taken: ReadonlyArray<Taken>): void => {
  const sortedBy = (name: keyof Taken) => taken.map((one) => one[name]).toSorted((a, b) => a - b)
  const median = (sorted: ReadonlyArray<number>) => Math.round(sorted[sorted.length >> 1] ?? 0)
  const wall = sortedBy("ms")
  process.stdout.write(
    `${what.padEnd(28)} median ${median(wall)} ms, slowest ${Math.round(wall.at(-1) ?? 0)} ms of ${wall.length}; CPU ${median(sortedBy("cpuMs"))} ms\n`
  )
}

const started = await chromium.launch({
  executablePath: process.env.PETREL_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"]
})
try {
  const context = await started.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  const inspected = await context.newCDPSession(page)
  await inspected.send("Performance.enable", { timeDomain: "threadTicks" })
  const cpuMs = async (): Promise<number> => {
    const { metrics } = await inspected.send("Performance.getMetrics")
    return (metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0) * 1_000
  }
  await page.goto(link)
  await page.waitForURL((now) => now.pathname === "/ui/")

  /** Resolves in the frame after something is there. */
  const painted = async (selector: string): Promise<void> => {
    await page.waitForSelector(selector)
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
  }

  for (const name of ["", "deliveries", "endpoints", "dead-letters"]) {
    const taken: Array<Taken> = []
    for (let n = 0; n < times; n++) {
      await page.goto("about:blank")
      const [began, before] = [performance.now(), await cpuMs()]
      await page.goto(`${origin}/ui/${name}?tenant=${tenant}`, { waitUntil: "commit" })
      await painted("tbody tr, .empty")
      const ms = performance.now() - began
      const after = await cpuMs()
      // Another page may have another process, whose count begins anew.
      taken.push({ ms, cpuMs: after > before ? after - before : after })
    }
    say(`first view of ${name === "" ? "overview" : name}`, taken)
  }

  // The rows that the console has, as if its page had a thousand.
  const known = page.waitForResponse(/\/tenants\/[^/]+\/deliveries(\?|$)/)
  await page.goto(`${origin}/ui/deliveries?tenant=${tenant}`)
  const answer = await (await known).json()
  const rows = answer.deliveries as ReadonlyArray<unknown>
  if (rows.length === 0) throw new Error(`the log has no delivery of ${values.tenant}`)
  const deliveries = Array.from({ length: many }, (_, at) => rows[at % rows.length])
  await page.route(/\/tenants\/[^/]+\/deliveries(\?|$)/, (route) =>
    route.fulfill({ json: { ...answer, deliveries } })
  )
  const taken: Array<Taken> = []
  for (let n = 0; n < times; n++) {
    await page.goto(`${origin}/ui/live?tenant=${tenant}`)
    await page.getByRole("heading", { level: 1 }).waitFor()
    const answered = page.waitForResponse(/\/deliveries/)
    await page.getByRole("link", { name: "Deliveries", exact: true }).click()
    await answered
    const [began, before] = [performance.now(), await cpuMs()]
    await painted(`tbody tr:nth-child(${many})`)
    const ms = performance.now() - began
    taken.push({ ms, cpuMs: (await cpuMs()) - before })
  }
  say(`${many.toLocaleString("en")} rows`, taken)
} finally {
  await started.close()
}
