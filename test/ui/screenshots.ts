/*
 * Pictures of all pages of a running console, in Debian's Chromium, to be looked at:
 *
 *     node test/ui/screenshots.ts LINK [--tenant acme] [--out pictures] [--only deliveries] [--width 390]
 *
 * LINK is one that logs in (`petrel login`). Each page is taken light and dark, as wide as a phone, a
 * tablet and a desk; of the lists, the page of their first row, too. Prints which pages are wider than
 * the screen.
 */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { chromium } from "playwright-core"

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    tenant: { type: "string", default: "acme" },
    out: { type: "string", default: "pictures" },
    only: { type: "string", multiple: true },
    width: { type: "string", multiple: true, default: ["390", "820", "1280"] }
  }
})
const [link] = positionals
if (link === undefined) throw new Error("give a link that logs in: petrel login prints one")
const { origin } = new URL(link)

/** Pages by the name of their picture; those of one thing are reached from a list's first row. */
const pages: Readonly<Record<string, string>> = {
  tenants: "",
  overview: "?tenant=",
  deliveries: "deliveries?tenant=",
  failed: "deliveries?state=dead-lettered&tenant=",
  events: "events?tenant=",
  attempts: "attempts?tenant=",
  endpoints: "endpoints?tenant=",
  "new-endpoint": "endpoints/new?tenant=",
  "dead-letters": "dead-letters?tenant=",
  jobs: "jobs?tenant=",
  "start-replay": "start/replay?tenant=",
  live: "live?tenant=",
  alerts: "alerts?tenant=",
  sources: "sources?tenant=",
  "new-source": "sources/new?tenant=",
  quarantine: "quarantine?tenant=",
  outboxes: "outboxes",
  policies: "policies?tenant=",
  settings: "settings?tenant=",
  tokens: "tokens?tenant=",
  audit: "audit",
  system: "system",
  nowhere: "nowhere"
}
const first: Readonly<Record<string, string>> = {
  delivery: "deliveries",
  "failed-delivery": "failed",
  event: "events",
  endpoint: "endpoints",
  job: "jobs",
  source: "sources",
  "quarantined-item": "quarantine"
}

const started = await chromium.launch({
  executablePath: process.env.PETREL_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"]
})
try {
  mkdirSync(values.out, { recursive: true })
  const context = await started.newContext({ viewport: { width: 1280, height: 900 } })
  const page = await context.newPage()
  await page.goto(link)
  await page.waitForURL((now) => now.pathname === "/ui/")

  /** Waits until a page shows what it has been answered. */
  const open = async (path: string): Promise<void> => {
    await page.goto(`${origin}/ui/${path}${path.endsWith("tenant=") ? values.tenant : ""}`)
    await page.getByRole("heading", { level: 1 }).first().waitFor()
    await page.locator("[aria-busy]").first().waitFor({ state: "detached" })
  }
  const addresses = new Map(Object.entries(pages))
  for (const [name, list] of Object.entries(first)) {
    await open(pages[list] ?? "")
    const row = page.locator("main tbody tr a").first()
    if ((await row.count()) === 0) continue
    addresses.set(name, ((await row.getAttribute("href")) ?? "").replace(/^\/ui\//, ""))
  }
  const endpoint = addresses.get("endpoint")
  if (endpoint !== undefined) {
    addresses.set("endpoint-settings", `${endpoint}/settings`)
    addresses.set("endpoint-history", `${endpoint}/history`)
  }
  for (const [name, path] of addresses) {
    if (values.only !== undefined && !values.only.includes(name)) continue
    for (const width of values.width.map(Number)) {
      await page.setViewportSize({ width, height: 900 })
      await page.emulateMedia({ colorScheme: "light" })
      await open(path)
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme })
        const file = join(values.out, `${name}-${width}-${colorScheme}.png`)
        await page.screenshot({ path: file, fullPage: true })
      }
      const wide = Number(await page.evaluate("document.documentElement.scrollWidth"))
      if (wide > width) process.stdout.write(`${name} is ${wide} wide on a screen of ${width}\n`)
    }
  }
} finally {
  await started.close()
}
