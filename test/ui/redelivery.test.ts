import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, nth, publish, worker } from "../kit/engine.ts"
import { disable } from "../kit/live-endpoints.ts"
import { faults, logIn, openPage, operatorPath, pagesConsole, portalPath } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

/** What pages have asked to send again, or only to count. */
const redeliveriesOf = (page: Page) => {
  const asked: Array<{ readonly dryRun?: boolean; readonly until?: string }> = []
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().endsWith("/redeliveries"))
      asked.push(request.postDataJSON())
  })
  return asked
}

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
            // Both have looked by the time that either sends.
            const looked = await one.page.request.post(
              `${console.url}/v1/tenants/acme/redeliveries`,
              {
                headers: { "sec-fetch-site": "same-origin" },
                data: { endpoint: "billing", type: "paid", reason: "permanent", dryRun: true }
              }
            )
            const plan = await looked.json()
            await one.page.route("**/redeliveries", (route) =>
              route.request().postDataJSON()?.dryRun === true
                ? route.fulfill({ json: plan })
                : route.continue()
            )
            return { ...one, asked: redeliveriesOf(one.page) }
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
          .getByText(/\d sent again/)
          .waitFor()
        // What dies after it was counted is not sent with it.
        for (const { asked } of opened) {
          assert.deepStrictEqual(
            asked.map(({ dryRun }) => dryRun),
            [true, undefined]
          )
          assert.match(asked[1]?.until ?? "", /^\d{4}-/)
          assert.strictEqual(asked[1]?.until, asked[0]?.until)
        }
        const address = page.url()
        assert.match(address, /job=/)
        // The browser is closed; another one comes back to the address.
        await page.context().close()
        const later = await second.page.context().newPage()
        await later.goto(address)
        await later
          .getByRole("status")
          .getByText(/(\d) of \1 are done/)
          .waitFor()
        await later.getByText("Redeliveries", { exact: true }).waitFor()
        const list = later.locator("details", { hasText: "Redeliveries" })
        await list
          .getByText(/\d sent again/)
          .nth(1)
          .waitFor({ state: "attached" })
        const told = await list.locator("small").allTextContents()
        const sent = told.map((text) => Number(/^([\d,]+) sent again/.exec(text)?.[1] ?? 0))
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

        // Where what is meant has changed since it was counted, that is shown, and nothing is sent.
        const asked = redeliveriesOf(portal.page)
        const plan = {
          ...{ selected: 12, redeliver: 10, reasons: { permanent: 10 }, gone: 0, before: 0 },
          ...{ deliveredLate: 0, superseded: 2, skipped: [], skippedElsewhere: 0 }
        }
        await portal.page.route("**/redeliveries", (route) => route.fulfill({ json: plan }), {
          times: 1
        })
        await portal.page.getByRole("button", { name: "What would be sent again?" }).click()
        await portal.page.getByText("10 of 12 dead letters would be sent again").waitFor()
        await portal.page.getByRole("button", { name: "Send 10 again" }).click()
        await portal.page.getByText("Nothing was sent").waitFor()
        await portal.page.getByText("12 of 12 dead letters would be sent again").waitFor()
        await portal.page.getByRole("button", { name: "Send 12 again" }).waitFor()
        assert.isTrue(asked.every(({ dryRun }) => dryRun === true))
        assert.deepStrictEqual([...first.wrong, ...second.wrong, ...portal.wrong], [])
      })
      yield* facts.count("delivered", 8)
      const again = hook.requests.slice(before)
      assert.lengthOf(again, 8)
      assert.strictEqual(new Set(again.map(({ headers }) => headers["webhook-id"])).size, 8)
      assert.isTrue(again.every(({ path }) => path === "/billing"))
    })
  )

  scenario("is not said of what its endpoint takes no more", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({ id: "billing", url: hook.url, types: ["paid"] })
      const facts = yield* history
      yield* worker()
      yield* publish("paid", "{}", { "Nats-Msg-Id": "acme.1" })
      yield* facts.count("dead-lettered", 1)
      const console = yield* pagesConsole(place)
      const owner = yield* portalPath("acme")
      const started = yield* browser
      const { page } = yield* Effect.promise(async () => {
        const opened = await openPage(started, console.url)
        await logIn(opened, console.url, owner)
        await opened.page.goto(`${console.url}/ui/deliveries/acme/acme.1.billing`)
        await opened.page.getByRole("button", { name: "Send again" }).click()
        return opened
      })
      yield* disable("billing")
      yield* Effect.promise(async () => {
        await page.getByRole("dialog").getByRole("button", { name: "Send again" }).click()
        await page.getByText("not sent: 1 for endpoints that take nothing now").waitFor()
      })
    })
  )
})
