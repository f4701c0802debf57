import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, publish, quickRetry, worker } from "../kit/engine.ts"
import { faults, logIn, openPage, operatorPath, pagesConsole } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 180_000 })

const { scenario } = onServer()

describe.skipIf(!hasBrowser)("the page of a delivery, in a browser", () => {
  scenario("tells its waits and what may come, and what was sent", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({ answer: { status: 503, body: "in maintenance" } })
      yield* endpoint({
        ...{ id: "billing", url: hook.url, types: ["paid"] },
        retry: quickRetry({ backoff: { kind: "fixed", delay: "10 minutes" }, window: "1 day" }),
        // Another policy, which holds for another type.
        retryFor: { refunded: "stripe" },
        headers: { authorization: "Bearer of-the-endpoint" }
      })
      yield* endpoint({ id: "crm", url: `${hook.url}/crm`, types: [">"], retry: "stripe" })
      const facts = yield* history
      yield* worker()
      yield* publish("paid", '{"invoice":42,"total":1.50,"id":12345678901234567890}', {
        "Nats-Msg-Id": "acme.one"
      })
      yield* facts.count("attempt-failed", 2)
      const console = yield* pagesConsole(place)
      const operator = yield* operatorPath()
      const started = yield* browser
      yield* Effect.promise(async () => {
        const watched = await openPage(started, console.url)
        const { page, wrong } = watched
        await logIn(watched, console.url, operator)
        await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
        await page.goto(`${console.url}/ui/deliveries/acme/acme.one.billing`)
        await page.getByText("in maintenance").waitFor()
        await page.getByText(/first byte after/).waitFor()
        await page
          .getByText(/Next attempt 10 min later, drawn from 10 min \(a policy of its own\)/)
          .waitFor()
        await page.getByText("Next: attempt 2").waitFor()
        await page.getByText(/If it keeps failing: \d+ more/).waitFor()
        await page.getByText("petrel delivery show acme.one.billing --tenant acme").waitFor()
        await page.getByRole("button", { name: "Retry now" }).hover()
        await page.getByText("petrel delivery retry acme.one.billing --tenant acme").waitFor()

        await page.getByRole("button", { name: "Show", exact: true }).click()
        await page.getByText('"invoice": 42').waitFor()
        // Numbers as they were published.
        await page.getByText(/"total": 1\.50,\s+"id": 12345678901234567890/).waitFor()
        await page.getByRole("button", { name: "as hexadecimal" }).click()
        await page.getByText("7b 22 69 6e 76 6f 69 63").waitFor()
        await page.getByText("Headers of the last attempt").click()
        await page.getByText("HMAC-SHA256(secret").waitFor()
        await page.getByRole("button", { name: "copy as curl" }).click()
        await page.getByRole("button", { name: "copied" }).waitFor()
        const copied = await page.evaluate<string>("navigator.clipboard.readText()")
        assert.include(copied, `curl -X POST '${hook.url}`)
        assert.include(
          copied,
          `--data-binary '{"invoice":42,"total":1.50,"id":12345678901234567890}'`
        )
        assert.include(copied, "'webhook-signature: NOT-SHOWN'")
        assert.notInclude(copied, "of-the-endpoint")
        await page.getByText("Verify it in your receiver").click()
        await page.getByText("new Webhook(secret)").first().waitFor()
        wrong.push(...(await faults(page)))

        await page.getByRole("link", { name: "acme.one", exact: true }).click()
        await page.getByRole("link", { name: "acme/crm" }).waitFor()
        await page.getByRole("link", { name: "acme/billing" }).waitFor()
        await page.getByRole("button", { name: "Show its payload" }).click()
        await page.getByText('"invoice": 42').waitFor()
        wrong.push(...(await faults(page, ["light"])))
        assert.deepStrictEqual(wrong, [])
      })
    })
  )
})
