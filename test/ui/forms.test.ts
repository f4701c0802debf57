import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint } from "../kit/engine.ts"
import { logIn, openPage, operatorPath, pagesConsole } from "../kit/pages.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

const field = (page: Page, path: string) => page.locator(`[id="${path}"]`)

/** Chooses whose figures the pages show, in their header. */
const chooseTenant = async (page: Page, tenant: string) => {
  // At once: while it is focused, a suggestion that comes in takes back what is typed.
  await page.locator("header input.short").evaluate((input, text) => {
    Object.assign(input, { value: text })
    input.dispatchEvent(new Event("change", { bubbles: true }))
  }, tenant)
  await page.waitForURL((now) => (now.searchParams.get("tenant") ?? "") === tenant)
}

describe.skipIf(!hasBrowser)("forms, in a browser", () => {
  scenario("do what they show, of whom they show it, and once", (place) =>
    Effect.gen(function* () {
      yield* endpoint({ id: "billing" })
      const console = yield* pagesConsole(place)
      const operator = yield* operatorPath()
      const started = yield* browser
      yield* Effect.promise(async () => {
        const watched = await openPage(started, console.url)
        const { page, wrong } = watched
        page.setDefaultTimeout(8_000)
        await logIn(watched, console.url, operator)

        // A form is about the tenant of the header, also once another one is chosen there.
        await page.goto(`${console.url}/ui/endpoints/new?tenant=acme`)
        await field(page, "id").fill("crm")
        await page.getByText("petrel endpoint add acme/crm").waitFor()
        await chooseTenant(page, "beta")
        await page.getByText("petrel endpoint add beta/crm").waitFor()
        await chooseTenant(page, "")
        await field(page, "tenant").fill("gamma")
        await page.getByText("petrel endpoint add gamma/crm").waitFor()
        await chooseTenant(page, "acme")
        await page.getByText("petrel endpoint add acme/crm").waitFor()
        assert.strictEqual(await field(page, "tenant").count(), 0)

        assert.deepStrictEqual(wrong, [])
      })
    })
  )
})
