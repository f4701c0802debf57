import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, nth, publish, worker } from "../kit/engine.ts"
import { faults, logIn, openPage, operatorPath, pagesConsole, portalPath } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

describe.skipIf(!hasBrowser)("sending many dead letters again, in a browser", () => {
  scenario("sends each once, whoever else sends them at the same time", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 400 } })
      for (const id of ["billing", "crm"])
        yield* endpoint({
          ...{ id, url: `${hook.url}/${id}`, types: ["paid", "refunded"] },
          circuit: { permanentFailures: 1_000 }
        })
      const facts = yield* history
      yield* worker()
      for (let n = 0; n < 12; n++)
        yield* publish(n % 3 === 0 ? "refunded" : "paid", `{"n":${n}}`, {
          "Nats-Msg-Id": `acme.${n}`
        })
      yield* facts.count("dead-lettered", 24)
      const console = yield* pagesConsole(place)
      const people = yield* Effect.all([operatorPath("Ada"), operatorPath("Bob")])
      const owner = yield* portalPath("acme", { endpoint: "crm" })
      const started = yield* browser
      hook.answer({ status: 200 })
      const before = hook.requests.length
      yield* Effect.promise(async () => {
        const opened = await Promise.all(
          people.map(async (path) => {
            const one = await openPage(started, console.url)
            await logIn(one, console.url, path)
            await one.page.goto(`${console.url}/ui/dead-letters?tenant=acme`)
            await one.page.getByLabel("endpoint", { exact: true }).fill("billing")
            await one.page.keyboard.press("Enter")
            await one.page.getByLabel("type", { exact: true }).fill("paid")
            await one.page.keyboard.press("Enter")
            await one.page.getByLabel(/^reason/).selectOption("permanent")
            await one.page.getByRole("button", { name: "What would be sent again?" }).click()
            await one.page
              .getByText("8 of 8 dead letters would be sent again: 8 permanent")
              .waitFor()
            return one
          })
        )
        const [first, second] = [nth(opened, 0), nth(opened, 1)]
        const { page } = first
        await page
          .getByText(
            "petrel dead redeliver --endpoint acme/billing --type paid --reason permanent --dry-run"
          )
          .waitFor()
        first.wrong.push(...(await faults(page)))
        await Promise.all(
          opened.map((one) => one.page.getByRole("button", { name: "Send 8 again" }).click())
        )
        await page.waitForURL(/job=/)
        await second.page.waitForURL(/job=/)
        await second.page
          .getByRole("status")
          .getByText(/were sent again/)
          .waitFor()
        const address = page.url()
        assert.match(address, /job=/)
        // The browser is closed; another one comes back to the address.
        await page.context().close()
        const later = await second.page.context().newPage()
        await later.goto(address)
        await later.getByRole("status").getByText("8 of 8 are done").waitFor()
        await later.getByText("Redeliveries", { exact: true }).waitFor()
        const list = later.locator("details", { hasText: "Redeliveries" })
        await list
          .getByText(/were sent again/)
          .nth(1)
          .waitFor({ state: "attached" })
        const told = await list.locator("small").allTextContents()
        const sent = told.map((text) => Number(/^([\d,]+) were sent again/.exec(text)?.[1] ?? 0))
        assert.strictEqual(
          sent.reduce((sum, n) => sum + n, 0),
          8,
          told.join(" | ")
        )
        // The owner of another endpoint sees and sends what is theirs alone.
        const portal = await openPage(started, console.url)
        await logIn(portal, console.url, owner)
        await portal.page.getByRole("link", { name: "Dead letters", exact: true }).click()
        // An hour is that before it was chosen: what is shown of it stays, and is not asked for without end.
        await portal.page.getByLabel("since").selectOption("1h")
        await portal.page
          .getByRole("row", { name: /acme\/crm/ })
          .first()
          .waitFor()
        await portal.page.getByRole("button", { name: "What would be sent again?" }).click()
        await portal.page.getByText("12 of 12 dead letters would be sent again").waitFor()
        assert.strictEqual(await portal.page.getByText("acme/billing").count(), 0)
        assert.deepStrictEqual([...first.wrong, ...second.wrong, ...portal.wrong], [])
      })
      yield* facts.count("delivered", 8)
      const again = hook.requests.slice(before)
      assert.lengthOf(again, 8)
      assert.strictEqual(new Set(again.map(({ headers }) => headers["webhook-id"])).size, 8)
      assert.isTrue(again.every(({ path }) => path === "/billing"))
    })
  )
})
