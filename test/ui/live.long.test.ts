import { assert, describe, vi } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { browser, hasBrowser } from "../kit/browser.ts"
import { startConsole } from "../kit/console.ts"
import { endpoint, history, publish, worker } from "../kit/engine.ts"
import { logIn, openPage, operatorPath } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 240_000 })

const { scenario } = onServer()

const failure = (n: number): string =>
  `id: ${n}\nevent: failure\ndata: ${JSON.stringify({
    ...{ seq: n, kind: "attempt-failed", at: "2026-03-04T10:30:00.000Z" },
    ...{ tenant: "acme", endpoint: "billing", event: `acme.made-up-${n}` }
  })}\n\n`

describe.skipIf(!hasBrowser)("the live page, in a browser", () => {
  scenario(
    "follows failures over a restart of its console, says what was left out, and keeps 1,000",
    () =>
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 400 } })
        yield* endpoint({
          ...{ id: "billing", url: hook.url, types: ["paid"] },
          circuit: { permanentFailures: 1_000 }
        })
        const facts = yield* history
        yield* worker()
        const first = yield* Scope.make()
        const console = yield* Scope.provide(startConsole({ hasPages: true }), first)
        const port = Number(new URL(console.url).port)
        const operator = yield* operatorPath()
        const started = yield* browser
        const watched = yield* Effect.promise(() => openPage(started, console.url))
        const { page, wrong } = watched
        yield* Effect.promise(async () => {
          await logIn(watched, console.url, operator)
          await page.goto(`${console.url}/ui/live?tenant=acme`)
          await page.getByText("What fails from now on").waitFor()
          await page.getByRole("status").getByText("following", { exact: true }).waitFor()
        })
        yield* publish("paid", "{}", { "Nats-Msg-Id": "acme.before" })
        yield* Effect.promise(() =>
          page.getByRole("link", { name: "acme.before" }).first().waitFor()
        )
        yield* Scope.close(first, Exit.void)
        // It does not say that it follows what it cannot follow.
        yield* Effect.promise(() =>
          page.getByRole("status").getByText("connecting again").waitFor()
        )
        yield* publish("paid", "{}", { "Nats-Msg-Id": "acme.meanwhile" })
        yield* facts.count("dead-lettered", 2)
        yield* startConsole({ hasPages: true, port })
        yield* Effect.promise(async () => {
          await page.getByRole("status").getByText("following", { exact: true }).waitFor()
          await page.getByRole("link", { name: "acme.meanwhile" }).first().waitFor()
          // What it knew stays in sight.
          assert.isAbove(await page.getByRole("link", { name: "acme.before" }).count(), 0)
          await page.keyboard.press("j")
          await page.keyboard.press("Enter")
          await page.getByText("Attempt 1").waitFor()

          const gap = `event: dropped\ndata: ${JSON.stringify({ dropped: 7, why: "this client reads too slowly" })}\n\n`
          const lines = Array.from({ length: 1_200 }, (_, n) => failure(n + 1))
          await page.route(/\/v1\/.*\/live/, (route) =>
            route.fulfill({ contentType: "text/event-stream", body: `${lines.join("")}${gap}` })
          )
          await page.goto(`${console.url}/ui/live?tenant=acme`)
          await page.getByText("7 left out: this client reads too slowly").first().waitFor()
          assert.strictEqual(await page.locator("tbody tr").count(), 1_000)
          await page.getByRole("button", { name: "Pause" }).click()
          await page.getByRole("status").getByText("paused").waitFor()
          await page.getByRole("button", { name: "Clear" }).click()
          await page.getByText("What fails from now on").waitFor()

          // An alert about a tenant, or about the installation, is about no endpoint.
          await page.unroute(/\/v1\/.*\/live/)
          const about = (seq: number, tenant: string) =>
            `id: ${seq}\nevent: failure\ndata: ${JSON.stringify({ seq, kind: "alert-raised", at: "2026-01-01T00:00:00.000Z", tenant, endpoint: "_" })}\n\n`
          await page.route(/\/v1\/.*\/live/, (route) =>
            route.fulfill({
              contentType: "text/event-stream",
              body: `${about(1, "acme")}${about(2, "_")}`
            })
          )
          await page.goto(`${console.url}/ui/live`)
          await page.getByRole("cell", { name: "the installation", exact: true }).first().waitFor()
          assert.isAbove(await page.getByRole("cell", { name: "acme", exact: true }).count(), 0)
          assert.strictEqual(await page.locator("tbody a[href*=endpoints]").count(), 0)
          assert.deepStrictEqual(wrong, [])
        })
      })
  )
})
