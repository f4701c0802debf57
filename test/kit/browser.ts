import { existsSync } from "node:fs"
import { Effect } from "effect"
import { type Browser, chromium } from "playwright-core"

/** Debian's Chromium, or what `PETREL_CHROMIUM` names. */
const executable = process.env.PETREL_CHROMIUM ?? "/usr/bin/chromium"

/** True where there is a browser: tests that drive one are skipped elsewhere. */
export const hasBrowser = existsSync(executable)

/** A browser, until the scope closes. */
export const browser: Effect.Effect<Browser, never, import("effect").Scope.Scope> =
  Effect.acquireRelease(
    Effect.promise(() =>
      chromium.launch({ executablePath: executable, args: ["--no-sandbox", "--disable-gpu"] })
    ),
    (started) => Effect.promise(() => started.close())
  )
