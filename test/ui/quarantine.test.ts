import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import { listQuarantine, quarantine } from "../../src/intake/quarantine.ts"
import { browser, hasBrowser } from "../kit/browser.ts"
import { logIn, openPage, operatorPath, pagesConsole, portalPath } from "../kit/pages.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

const put = (body: string) =>
  quarantine(
    "acme",
    {
      ...{ source: "stripe", provider: "stripe", reason: "unreadable", problem: "no JSON" },
      ...{ contentType: "text/plain", headers: {}, method: "POST", url: "http://x/" }
    },
    Buffer.from(body)
  )

const numbers = Effect.map(listQuarantine("acme"), (found) => found.map(({ seq }) => seq))

describe.skipIf(!hasBrowser)("the quarantine, in a browser", () => {
  scenario("discards what was shown and agreed to, and nothing that came in meanwhile", (place) =>
    Effect.gen(function* () {
      yield* put("one")
      yield* put("two")
      const console = yield* pagesConsole(place)
      const started = yield* browser
      const path = yield* operatorPath("Ada")
      const { page } = yield* Effect.promise(async () => {
        const opened = await openPage(started, console.url)
        await logIn(opened, console.url, path)
        await opened.page.goto(`${console.url}/ui/quarantine?tenant=acme`)
        // A key that types nothing in a box is one of the page.
        const box = opened.page.getByRole("checkbox").first()
        await box.focus()
        await opened.page.keyboard.press("?")
        await opened.page.getByRole("dialog").getByRole("button", { name: "Close" }).click()
        await opened.page.getByRole("button", { name: "Discard these 2" }).click()
        await opened.page.getByRole("dialog").getByText("Discard these 2 for good?").waitFor()
        return opened
      })
      const third = yield* put("three")
      const discard = page.getByRole("dialog").getByRole("button", { name: "Discard these 2" })
      yield* Effect.promise(async () => {
        // The list is read again behind the dialog.
        await page.getByText("Release these 3").waitFor({ timeout: 30_000 })
        await discard.click()
        await page.getByRole("button", { name: "Discard this one" }).waitFor()
      })
      assert.deepStrictEqual(yield* numbers, [third.seq])
    })
  )

  scenario("has nothing to select for who may do nothing with it", (place) =>
    Effect.gen(function* () {
      const { seq } = yield* put("one")
      const console = yield* pagesConsole(place)
      const started = yield* browser
      const paths = yield* Effect.all([operatorPath("Ada"), portalPath("acme")])
      const selected = yield* Effect.promise(() =>
        Promise.all(
          paths.map(async (path) => {
            const opened = await openPage(started, console.url)
            await logIn(opened, console.url, path)
            await opened.page.goto(`${console.url}/ui/quarantine?tenant=acme`)
            await opened.page.getByRole("link", { name: String(seq), exact: true }).waitFor()
            return opened.page.getByRole("checkbox").count()
          })
        )
      )
      assert.deepStrictEqual(selected, [1, 0])
    })
  )
})
