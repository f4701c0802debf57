import { existsSync } from "node:fs"
import { Effect } from "effect"
import { type Browser, chromium } from "playwright-core"

/** Debian's Chromium, or what `PETREL_CHROMIUM` names. */
const executable = process.env.PETREL_CHROMIUM ?? "/usr/bin/chromium"

/** True where there is a browser: tests that drive one are skipped elsewhere. */
export const hasBrowser = existsSync(executable)

/**
 * The browser of all stories of this process, with which it ends: to start one takes two seconds of
 * CPU.
 */
let started: Promise<Browser> | undefined

/**
 * A browser. What was opened in it is closed with the scope, so that no page goes on asking a console
 * that is gone.
 */
export const browser: Effect.Effect<Browser, never, import("effect").Scope.Scope> =
  Effect.acquireRelease(
    Effect.promise(() => {
      started ??= chromium.launch({
        executablePath: executable,
        args: ["--no-sandbox", "--disable-gpu"]
      })
      return started
    }),
    (started) =>
      Effect.promise(() => Promise.all(started.contexts().map((context) => context.close())))
  )
