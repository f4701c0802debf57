import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, lateRetry, publish, quickRetry, worker } from "../kit/engine.ts"
import { startGateway, stripeEvent, stripeSecret, stripeWebhook } from "../kit/gateway.ts"
import { logIn, openPage, operatorPath, pagesConsole } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 400_000 })

const { scenario } = onServer()

/** A figure of a page, and where it leads. */
interface Figure {
  readonly text: string
  readonly href: string
  readonly n: number
}

/** A link whose text has a number at its beginning or, as the chips of answers have it, at its end. */
const figuresOf = async (page: Page): Promise<ReadonlyArray<Figure>> => {
  const links = await page.locator("main a").evaluateAll((all) =>
    all
      // What the narrow screen hides is the same.
      .filter((one) => one.closest("nav, .hours") === null)
      .map((one) => ({
        text: (one.querySelector("b") ?? one).textContent?.trim() ?? "",
        href: one.getAttribute("href") ?? ""
      }))
  )
  return links.flatMap(({ href, text }) => {
    const n = /^([\d,]+)(?= (?!(?:ms|s|min|h|d)$)|$)/.exec(text)?.[1]
    // Neither a status nor the progress of a job counts rows.
    const isOther = n === undefined || href.endsWith(`status=${n}`) || href.includes("job=")
    return isOther ? [] : [{ text, href, n: Number(n.replaceAll(",", "")) }]
  })
}

/** Returns how many of what a figure counts a page shows: of a delivery, for each round. */
const shownOn = async (page: Page, href: string): Promise<ReadonlyArray<number>> => {
  const [, name, , id] = new URL(href, "http://x").pathname.replace(/^\/ui/, "").split("/")
  if (name === "deliveries" && id !== undefined) {
    const rounds = await page.locator(".life").all()
    return Promise.all(
      rounds.map((round) => round.locator(".what b:text-matches('^(Attempt|Probe)')").count())
    )
  }
  const selector =
    name === "system"
      ? "table:has(th:text-is('In flight')) tbody td:nth-child(3):not(:text-is('0'))"
      : name === "sources" && id !== undefined
        ? ".card:has(h2:text-is('Secrets')) dt"
        : "main .scrolls tbody tr"
  return [await page.locator(selector).count()]
}

describe.skipIf(!hasBrowser)("the figures of a console, in a browser", () => {
  scenario("each lead to as many rows as they say", (place) =>
    Effect.gen(function* () {
      const refusing = yield* receiver({ answer: { status: 400 } })
      const failing = yield* receiver({ answer: { status: 503 } })
      const taking = yield* receiver()
      const at = Date.now()
      const add = (id: string, url: string, changes: Parameters<typeof endpoint>[0] = {}) =>
        endpoint({ id, url, types: ["paid"], retry: lateRetry, ...changes })
      yield* add("billing", refusing.url, { alerts: { deadLetters: 1 } })
      yield* add("books", taking.url, { types: ["paid", "stripe.>"] })
      yield* add("crm", failing.url, { retry: quickRetry({ maxAttempts: 3 }) })
      yield* add("ledger", failing.url)
      yield* add("nowhere", "http://127.0.0.1:9/")
      yield* add("open", failing.url, { types: ["late"], circuit: { failures: 1, rate: "none" } })
      yield* add("held", taking.url, { paused: { at, by: "Ada" } })
      yield* add("off", taking.url, { disabled: { at, by: "Ada", reason: "moved" } })
      const facts = yield* history
      yield* worker()
      for (const id of ["one", "two", "three"])
        yield* publish("paid", "{}", { "Nats-Msg-Id": `acme.${id}` })
      yield* publish("late", "{}", { "Nats-Msg-Id": "acme.four" })
      yield* facts.count("dead-lettered", 6)
      // Three times at crm, once at each other that does not take it.
      yield* facts.count("attempt-failed", 3 * 2 + 2 * 3 + 1)
      const console = yield* pagesConsole(place)
      const operator = yield* operatorPath("Ada")
      const started = yield* browser
      const watched = yield* Effect.promise(() => openPage(started, console.url))
      const { page, wrong } = watched
      const headers = { "sec-fetch-site": "same-origin" }
      const tenant = `${console.url}/v1/tenants/acme`
      const ask = async (path: string, data: object) => {
        const answer = await page.request.post(`${tenant}/${path}`, { headers, data })
        assert.isTrue(answer.ok(), await answer.text())
        return answer.json()
      }
      yield* Effect.promise(async () => {
        await logIn(watched, console.url, operator)
        await ask("sources/stripe", { provider: "stripe", secrets: [stripeSecret] })
      })
      const { post } = yield* startGateway()
      yield* post("/in/acme/stripe", stripeWebhook(stripeEvent("evt_1")))
      yield* post("/in/acme/stripe", stripeWebhook({ hello: "world" }))
      yield* facts.count("quarantined", 1)
      // A delivery of two rounds, one of which is dead.
      taking.answer({ status: 200 })
      failing.answer({ status: 200 })
      yield* Effect.promise(() => ask("redeliveries", { endpoint: "crm", reason: "attempts" }))
      yield* facts.count("delivered", 3 + 1 + 3)
      const audit = yield* Effect.promise(async () => {
        const answer = await page.request.post(`${console.url}/v1/audits`, { headers, data: {} })
        return (await answer.json()).id as string
      })
      yield* Effect.promise(async () => {
        await page.goto(`${console.url}/ui/alerts?tenant=acme`)
        await page.getByText("dead letter", { exact: false }).first().waitFor()
        await page.goto(`${console.url}/ui/audit?job=${audit}`)
        await page.getByText("deliveries begun").waitFor()

        const seen = new Map<string, string>()
        const problems: Array<string> = []
        const look = async (path: string, before: () => Promise<void> = async () => {}) => {
          await page.goto(`${console.url}/ui/${path}`)
          await page.getByRole("heading", { level: 1 }).first().waitFor()
          await page.locator("[aria-busy]").first().waitFor({ state: "detached" })
          await before()
          const figures = await figuresOf(page)
          for (const { href, n, text } of figures) {
            const key = `${text} ${href}`
            if (seen.has(key)) continue
            seen.set(key, path)
            await page.goto(`${console.url}${href}`)
            await page.getByRole("heading", { level: 1 }).first().waitFor()
            await page.locator("[aria-busy]").first().waitFor({ state: "detached" })
            let shown: ReadonlyArray<number> = []
            // What the log does not have yet comes within a moment.
            for (let looks = 0; looks < 20 && !shown.includes(n); looks++)
              shown = await shownOn(page, href)
            if (!shown.includes(n))
              problems.push(`${path}: "${text}" leads to ${shown.join(", ")} at ${href}`)
          }
          return figures.length
        }
        const least: Readonly<Record<string, number>> = {
          "": 6,
          "?tenant=acme": 10,
          "endpoints?tenant=acme": 2,
          "endpoints/acme/billing": 4,
          "endpoints/acme/ledger": 4,
          "endpoints/acme/nowhere": 4,
          "endpoints/acme/open": 4,
          "events?tenant=acme": 5,
          "events/acme/acme.one": 5,
          "deliveries?tenant=acme": 8,
          "dead-letters?tenant=acme&open=false": 6,
          "alerts?tenant=acme": 1,
          "sources?tenant=acme": 1,
          system: 4,
          [`audit?job=${audit}`]: 5
        }
        for (const [path, most] of Object.entries(least)) {
          const found = await look(path)
          if (found < most) problems.push(`${path} has ${found} figures that lead somewhere`)
        }
        await look("dead-letters?tenant=acme", async () => {
          await page.getByRole("button", { name: "What would be sent again?" }).click()
          await page.getByText("would be sent again:").waitFor()
        })
        await look(
          "start/recovery?tenant=acme&endpoint=billing&since=2026-01-01T00:00:00Z",
          async () => {
            await page.getByRole("button", { name: "What would be sent?" }).click()
            await page.getByText("to be sent again").waitFor()
          }
        )
        assert.deepStrictEqual(problems, [])
        assert.deepStrictEqual(wrong, [])
      })
    })
  )
})
