import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, publish, worker } from "../kit/engine.ts"
import { faults, logIn, openPage, operatorPath, pagesConsole } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 240_000 })

const { scenario } = onServer()

describe.skipIf(!hasBrowser)("the lists and figures of a console, in a browser", () => {
  scenario("lead from figures to what they count, and are walked by keys", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 400 } })
      yield* endpoint({
        ...{ id: "billing", url: hook.url, types: ["paid"], metadata: { customer: "4711" } },
        circuit: { permanentFailures: 1_000 }
      })
      yield* endpoint({ id: "bookings", url: hook.url, types: ["booked"] })
      const facts = yield* history
      yield* worker()
      yield* publish("paid", "{}", { "Nats-Msg-Id": "acme.one" })
      yield* facts.count("dead-lettered", 1)
      hook.answer({ status: 200 })
      yield* publish("paid", "{}", { "Nats-Msg-Id": "acme.two" })
      yield* facts.count("delivered", 1)
      const console = yield* pagesConsole(place)
      const operator = yield* operatorPath("Ada")
      const started = yield* browser
      yield* Effect.promise(async () => {
        const watched = await openPage(started, console.url)
        const { page, wrong } = watched
        await logIn(watched, console.url, operator)
        const row = () => page.locator("main tbody tr")

        // Without a tenant the overview has all of them, and one is chosen there.
        await page.getByRole("link", { name: "acme", exact: true }).click()
        await page.getByText("Attempts in a day").waitFor()
        await page.getByRole("link", { name: "4xx 1" }).waitFor()
        wrong.push(...(await faults(page)))
        await page.getByRole("link", { name: "4xx 1" }).click()
        await page.getByRole("cell", { name: "400" }).waitFor()
        assert.strictEqual(await row().count(), 1)
        assert.include(page.url(), "status=4xx")
        await page.getByText("petrel attempts --tenant acme --status 4xx").waitFor()
        wrong.push(...(await faults(page)))
        await page.getByLabel("outcome").selectOption("success")
        await page.getByText("No attempt matches these filters.").waitFor()
        await page.goBack()
        await page.getByRole("cell", { name: "400" }).waitFor()
        await page.getByRole("link", { name: "Events" }).click()
        await page.getByRole("link", { name: "acme.two" }).waitFor()
        assert.strictEqual(await row().count(), 2)
        wrong.push(...(await faults(page)))
        // Newest first: of the second of them one delivery is dead.
        await row().nth(1).getByRole("link", { name: "1" }).click()
        await page.getByRole("link", { name: "acme.one" }).waitFor()
        assert.include(page.url(), "state=dead-lettered")
        assert.strictEqual(await row().count(), 1)

        // A list is walked by keys, forth and back, and stays where it is while it is asked for anew.
        await page.goto(`${console.url}/ui/deliveries?tenant=acme`)
        await page.getByRole("link", { name: "acme.two" }).waitFor()
        await page.keyboard.press("j")
        await page.keyboard.press("j")
        await page.keyboard.press("k")
        const newest = await page.locator("tr:focus-within a").first().innerText()
        await page.waitForResponse(/\/deliveries/)
        assert.strictEqual(await page.locator("tr:focus-within a").first().innerText(), newest)
        await page.keyboard.press("Enter")
        await page.getByText("Routed").waitFor()
        assert.include(page.url(), `/ui/deliveries/acme/${newest}.billing`)

        // A delivery, an event and an endpoint are found from everywhere.
        for (const [text, path] of [
          ["acme.one.billing", "/ui/deliveries/acme/acme.one.billing"],
          ["acme.two", "/ui/deliveries?tenant=acme&event=acme.two"],
          ["acme/billing", "/ui/endpoints/acme/billing"],
          ["bill", "/ui/endpoints/acme/billing"],
          ["acme/bi", "/ui/endpoints/acme/billing"],
          ["b", "/ui/endpoints?tenant=acme&id=b*"]
        ]) {
          await page.goto(`${console.url}/ui/alerts?tenant=acme`)
          await page.getByRole("heading", { level: 1 }).waitFor()
          await page.keyboard.press("/")
          await page.keyboard.type(text ?? "")
          await page.keyboard.press("Enter")
          await page.waitForURL(`${console.url}${path}`)
        }

        // An hour of the chart leads to its attempts.
        await page.goto(`${console.url}/ui/endpoints/acme/billing`)
        await page.locator(".hours a").last().click()
        await page.getByRole("heading", { name: "Attempts" }).waitFor()
        assert.match(page.url(), /since=.*until=/)
        await page.getByRole("link", { name: "acme.one" }).waitFor()
        assert.strictEqual(await row().count(), 2)
        // Times are typed as they are shown.
        await page.getByRole("button", { name: "local time" }).click()
        const since = new URL(page.url()).searchParams.get("since") ?? ""
        assert.strictEqual(
          (await page.getByLabel("from").inputValue()).slice(0, 16),
          since.slice(0, 16)
        )
        assert.match((await page.locator("time").first().getAttribute("title")) ?? "", / UTC$/)

        await page.goto(`${console.url}/ui/endpoints?tenant=acme`)
        await page.getByRole("link", { name: "acme/billing" }).waitFor()
        await page.getByLabel("metadata").fill("customer=4712")
        await page.getByLabel("metadata").press("Enter")
        await page.getByText("No endpoint of this page has").waitFor()
        await page.getByText("petrel endpoint list acme --metadata").waitFor()
        await page.getByLabel("metadata").fill("customer=4711")
        await page.getByLabel("metadata").press("Enter")
        await page.getByRole("link", { name: "acme/billing" }).waitFor()

        await page.getByLabel("metadata").fill("")
        await page.getByLabel("metadata").press("Enter")
        await page.getByLabel("id", { exact: true }).fill("b*")
        await page.getByLabel("id", { exact: true }).press("Enter")
        await page.getByText("petrel endpoint list acme --id 'b*'").waitFor()
        await page.getByRole("link", { name: "acme/bookings" }).waitFor()
        assert.strictEqual(await row().count(), 2)
        wrong.push(...(await faults(page)))
        await page.getByLabel("id", { exact: true }).fill("bill")
        await page.getByLabel("id", { exact: true }).press("Enter")
        await page.getByText("No endpoint has this id").waitFor()

        await page.goto(`${console.url}/ui/endpoints/acme/billing/history`)
        await page.getByRole("cell", { name: "added" }).waitFor()
        wrong.push(...(await faults(page)))

        await page.goto(`${console.url}/ui/policies`)
        await page
          .getByText(/16 attempts at most; given up after \d/)
          .first()
          .waitFor()
        wrong.push(...(await faults(page)))

        await page.goto(`${console.url}/ui/settings`)
        await page.getByRole("heading", { name: "Settings of the system" }).waitFor()
        await page.locator("#hostCap").fill("200")
        await page.getByText("petrel tenant set --system --host-cap 200").waitFor()
        // Who leaves a page before its request is answered may have sent none.
        const save = () =>
          Promise.all([
            page.waitForResponse((one) => one.request().method() === "PATCH" && one.ok()),
            page.getByRole("button", { name: "Save" }).click()
          ])
        await save()
        await page.goto(`${console.url}/ui/settings?tenant=acme`)
        await page.getByPlaceholder("200, of the system").waitFor()
        await page.locator("#hostCap").fill("0")
        await page.getByRole("button", { name: "Save" }).click()
        await page.locator("#hostCap-says").getByRole("alert").waitFor()
        await page.locator("#hostCap").fill("7")
        await page.locator("#forwardHeaders").fill("x-correlation-id")
        await page
          .getByText("petrel tenant set acme --host-cap 7 --forward-header x-correlation-id")
          .waitFor()
        await save()
        await page.reload()
        await page.locator("#hostCap").waitFor()
        assert.strictEqual(await page.locator("#hostCap").inputValue(), "7")
        wrong.push(...(await faults(page)))
        await page.locator("#hostCap").fill("")
        await page.getByText("petrel tenant set acme --no-host-cap").waitFor()
        await page.getByRole("button", { name: "Save" }).click()
        await page.getByPlaceholder("200, of the system").waitFor()
        assert.deepStrictEqual(wrong, [])
      })
    })
  )
})
