/*
 * How fast the pages of a running console are, in Debian's Chromium:
 *
 *     node test/ui/measure.ts LINK [--tenant acme] [--times 9]
 *
 * LINK is one that logs in (`petrel login`). Prints medians and the slowest, ms: from the request of a
 * page until its rows are painted (the first view), and how long 1,000 rows take from their answer to
 * the next frame. The rows are the console's own, repeated.
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

const say = (what: string, taken: ReadonlyArray<number>): void => {
  const sorted = taken.toSorted((a, b) => a - b)
  const [median, slowest] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)]
  process.stdout.write(
    `${what.padEnd(34)} median ${Math.round(median ?? 0)} ms, slowest ${Math.round(slowest ?? 0)} ms of ${sorted.length}\n`
  )
}

const started = await chromium.launch({
  executablePath: process.env.PETREL_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"]
})
try {
  const context = await started.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  await page.goto(link)
  await page.waitForURL((now) => now.pathname === "/ui/")

  /** Resolves in the frame after something is there. */
  const painted = async (selector: string): Promise<void> => {
    await page.waitForSelector(selector)
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
  }

  for (const name of ["", "deliveries", "endpoints", "dead-letters"]) {
    const taken: Array<number> = []
    for (let n = 0; n < times; n++) {
      await page.goto("about:blank")
      const began = performance.now()
      await page.goto(`${origin}/ui/${name}?tenant=${tenant}`, { waitUntil: "commit" })
      await painted("tbody tr, .empty")
      taken.push(performance.now() - began)
    }
    say(`first view of ${name === "" ? "overview" : name}`, taken)
  }

  // The rows that the console has, as if its page had a thousand.
  await page.route("**/v1/tenants/*/deliveries?**", async (route) => {
    const answer = await (await route.fetch()).json()
    const rows = answer.deliveries as ReadonlyArray<unknown>
    const deliveries = Array.from({ length: many }, (_, at) => rows[at % rows.length])
    await route.fulfill({ json: { ...answer, deliveries } })
  })
  const taken: Array<number> = []
  for (let n = 0; n < times; n++) {
    await page.goto(`${origin}/ui/live?tenant=${tenant}`)
    await page.getByRole("heading", { level: 1 }).waitFor()
    const answered = page.waitForResponse(/\/deliveries/)
    await page.getByRole("link", { name: "Deliveries", exact: true }).click()
    await answered
    const began = performance.now()
    await painted(`tbody tr:nth-child(${many})`)
    taken.push(performance.now() - began)
  }
  say(`${many.toLocaleString("en")} rows`, taken)
} finally {
  await started.close()
}
