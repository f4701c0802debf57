import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, publish, worker } from "../kit/engine.ts"
import { logIn, openPage, operatorPath, pagesConsole } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

/** What tells where an element of a page is. */
interface Placed {
  readonly contains: (other: unknown) => boolean
  readonly getBoundingClientRect: () => Record<
    "height" | "left" | "right" | "top" | "width",
    number
  >
}

/** True if an element is within the screen, and under nothing else. */
const isInSight = (one: unknown): boolean => {
  const { document, innerWidth } = globalThis as unknown as {
    readonly innerWidth: number
    readonly document: { readonly elementFromPoint: (x: number, y: number) => unknown }
  }
  const { height, left, right, top, width } = (one as Placed).getBoundingClientRect()
  const shown = document.elementFromPoint(left + width / 2, top + height / 2)
  return left >= 0 && right <= innerWidth && (one as Placed).contains(shown)
}

describe.skipIf(!hasBrowser)("the lists of a console, in a browser", () => {
  scenario("have further pages, and take times that are typed", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({
        ...{ id: "billing", url: hook.url, types: ["paid"] },
        circuit: { permanentFailures: 1_000 }
      })
      yield* endpoint({ id: "bookings", url: hook.url, types: ["booked"] })
      const facts = yield* history
      yield* worker()
      yield* publish("paid", "{}", { "Nats-Msg-Id": "acme.one" })
      yield* facts.count("dead-lettered", 1)
      yield* publish("paid", "{}", { "Nats-Msg-Id": "acme.two" })
      yield* facts.count("dead-lettered", 2)
      const console = yield* pagesConsole(place)
      const operator = yield* operatorPath()
      const started = yield* browser
      yield* Effect.promise(async () => {
        const watched = await openPage(started, console.url)
        const { page, wrong } = watched
        await logIn(watched, console.url, operator)
        const next = page.getByRole("button", { name: "Next page" })
        const row = (event: string) => page.getByRole("link", { name: event, exact: true })

        // One row is a page.
        const listed = /\/v1\/tenants\/acme\/(deliveries|events|attempts|dead-letters)\?/
        await page.route(listed, (route) =>
          route.continue({ url: `${route.request().url()}&limit=1` })
        )
        // Dead letters are listed oldest first.
        for (const [name, first, second] of [
          ["deliveries", "acme.two", "acme.one"],
          ["events", "acme.two", "acme.one"],
          ["attempts", "acme.two", "acme.one"],
          ["dead-letters", "acme.one", "acme.two"]
        ] as const) {
          await page.goto(`${console.url}/ui/${name}?tenant=acme&since=1h`)
          await row(first).waitFor()
          await next.click()
          await row(second).waitFor()
          // The page has an address of its own.
          await page.reload()
          await row(second).waitFor()
          await page.goBack()
          await row(first).waitFor()
          assert.include(page.url(), "since=1h")
          // A cursor of another hour, as old addresses have it, begins at the first page.
          await next.click()
          await row(second).waitFor()
          const { searchParams } = new URL(page.url())
          const before = new URLSearchParams({ tenant: "acme", since: "1h" })
          before.set("cursor", searchParams.get("cursor") ?? "none")
          await page.goto(`${console.url}/ui/${name}?${before}`)
          await row(first).waitFor()
          assert.deepStrictEqual(await page.getByRole("alert").allInnerTexts(), [])
        }
        await page.unroute(listed)

        // A year that is being typed is not asked for, and one date is one step back.
        const asked: Array<string> = []
        page.on("request", (request) => {
          if (request.url().includes("/v1/tenants/acme/events?")) asked.push(request.url())
        })
        await page.goto(`${console.url}/ui/events?tenant=acme&since=2026-01-02T03:04:05.000Z`)
        await row("acme.two").waitFor()
        const entries = await page.evaluate("history.length")
        const from = page.getByLabel("from")
        await from.focus()
        // Month, day and year, as this browser's language has them.
        await page.keyboard.type("02032025")
        // What is drawn anew meanwhile leaves it there.
        await page.waitForResponse(/\/v1\/tenants\/acme\/events\?/)
        await page.waitForResponse(/\/v1\/tenants\/acme\/events\?/)
        assert.match(await from.inputValue(), /^2025-02-03T/)
        assert.include(page.url(), "since=2026-01-02")
        await page.keyboard.press("Enter")
        await page.waitForURL(/since=2025-02-03/)
        assert.strictEqual(await page.evaluate("history.length"), entries)
        // Six digits of a year are not one.
        await from.focus()
        await page.keyboard.type("02032026")
        await page.keyboard.type("99")
        await page.keyboard.press("Enter")
        await from.blur()
        await row("acme.two").waitFor()
        assert.strictEqual(await from.count(), 1)
        await from.fill("0202-02-03T00:00:00")
        await from.press("Enter")
        await from.fill("2025-03-04T05:06:07")
        await from.blur()
        await page.waitForURL(/since=2025-03-04/)
        assert.deepStrictEqual(
          asked.filter((url) => !/since=202\d-/.test(url)),
          []
        )
        await from.fill("")
        await from.press("Enter")
        await page.waitForURL((url) => !url.search.includes("since"))

        // Lists that are read in one direction lead back to their beginning.
        await page.route(/\/v1\/tenants\/acme\/endpoints\?/, (route) =>
          route.continue({ url: route.request().url().replace("limit=100", "limit=1") })
        )
        await page.goto(`${console.url}/ui/endpoints?tenant=acme`)
        await row("acme/billing").waitFor()
        const firstPage = page.getByRole("button", { name: "First page" })
        assert.strictEqual(await firstPage.count(), 0)
        await next.click()
        await row("acme/bookings").waitFor()
        await firstPage.click()
        await row("acme/billing").waitFor()
        assert.notInclude(page.url(), "cursor")

        // An event has the deliveries that were skipped beside the others.
        await page.goto(`${console.url}/ui/events?tenant=acme`)
        await row("acme.two").waitFor()
        const heads = await page.getByRole("columnheader").allInnerTexts()
        assert.includeMembers(heads, ["Waiting", "Delivered", "Dead", "Discarded", "Skipped"])

        // On a phone, too, one sees at which endpoint, and what became of it.
        await page.setViewportSize({ width: 390, height: 800 })
        for (const [name, is] of [
          ["dead-letters", "permanent"],
          ["deliveries", "dead-lettered"],
          ["attempts", "400"]
        ] as const) {
          await page.goto(`${console.url}/ui/${name}?tenant=acme`)
          await row("acme.two").waitFor()
          for (const text of ["acme/billing", is])
            assert.isTrue(
              await page.locator("main tbody").getByText(text).first().evaluate(isInSight),
              `${name} ${text}`
            )
        }
        assert.deepStrictEqual(wrong, [])
      })
    })
  )
})
