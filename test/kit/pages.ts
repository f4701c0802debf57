import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { Effect } from "effect"
import type { Browser, Page } from "playwright-core"
import { operatorNamed } from "../../src/operations/caller.ts"
import { runJobs } from "../../src/operations/jobs/job-runner.ts"
import { makeOperatorLink, makePortalLink } from "../../src/operations/tokens/sessions.ts"
import { LiveTokens } from "../../src/operations/tokens/token-store.ts"
import { DeliveryLog } from "../../src/projection/delivery-log.ts"
import { serveProjection } from "../../src/projection/remote-log.ts"
import { startConsole } from "./console.ts"
import { directory, optionsOf } from "./delivery-log.ts"
import type { Installation } from "./engine.ts"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** What axe finds wrong in a page. It takes a second of CPU for each theme. */
export const faults = async (
  page: Page,
  themes: ReadonlyArray<"light" | "dark"> = ["light", "dark"]
): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  for (const colorScheme of themes) {
    await page.emulateMedia({ colorScheme })
    // Not as a script element, which the page's policy forbids.
    await page.evaluate(axe)
    const violations = await page.evaluate(async () => {
      const { axe } = globalThis as unknown as {
        axe: {
          run: () => Promise<{ violations: Array<{ id: string; nodes: Array<{ html: string }> }> }>
        }
      }
      const { violations } = await axe.run()
      return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 160)}`)
    })
    found.push(...violations.map((text) => `${page.url()} ${colorScheme} ${text}`))
  }
  return found
}

/** A console with all that its pages ask for: the log of deliveries, and jobs. */
export const pagesConsole = Effect.fnUntraced(function* (place: Installation) {
  const log = yield* serveProjection(optionsOf(place, yield* directory))
  yield* runJobs("pages")
  return yield* startConsole({ hasPages: true }).pipe(Effect.provideService(DeliveryLog, log))
})

/** Makes the path of a link that logs an operator in, called so in the history. */
export const operatorPath = (name = "test") =>
  Effect.provide(makeOperatorLink(name, operatorNamed("test")), LiveTokens.layer).pipe(
    Effect.map(({ path }) => path)
  )

/** Makes the path of a link to the portal of a tenant, or of one of its endpoints. */
export const portalPath = (tenant: string, settings: Parameters<typeof makePortalLink>[1] = {}) =>
  Effect.provide(makePortalLink(tenant, settings, operatorNamed("test")), LiveTokens.layer).pipe(
    Effect.map(({ path }) => path)
  )

/** A page of a browser of its own, with all that is wrong there. */
export interface Watched {
  readonly page: Page
  /** Errors of scripts, what the policy of the pages forbids, and requests for other hosts. */
  readonly wrong: Array<string>
}

/** How long a page may take on a machine that others use, ms. */
const stepTimeoutMs = 60_000

/** Opens a page in a browser without any session. */
export const openPage = async (started: Browser, url: string): Promise<Watched> => {
  const page = await (await started.newContext()).newPage()
  page.setDefaultTimeout(stepTimeoutMs)
  const wrong: Array<string> = []
  page.on("pageerror", ({ message }) => wrong.push(message))
  page.on("console", (message) => {
    if (/Content.Security.Policy/i.test(message.text())) wrong.push(message.text())
  })
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) wrong.push(request.url())
  })
  return { page, wrong }
}

/** Logs in with the path of a link. */
export const logIn = async ({ page }: Watched, url: string, path: string): Promise<void> => {
  await page.goto(`${url}${path}`)
  await page.waitForURL((now) => now.pathname === "/ui/")
  await page.getByRole("heading", { level: 1 }).waitFor()
}
