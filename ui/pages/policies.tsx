import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { shownTenant } from "../frame.tsx"
import { Answered, Command } from "../parts.tsx"
import { petrel } from "../session.ts"
import { spanMs } from "../span.ts"
import { lastingExactly } from "../times.tsx"
import { Schedule } from "./schedule.tsx"

/** The retry policies that have a name, and when their attempts come. */
export const Policies = () => {
  const tenant = shownTenant()
  // The same for all tenants: a tenant is in the address of each.
  const asked = useAsked("presets", (options) =>
    petrel.settings.presets({ tenant: tenant === "*" ? "any" : tenant }, options)
  )
  return (
    <>
      <h1>Retry policies</h1>
      <p class="lead">
        An endpoint names one of these as its <code>retry</code>, or has a policy of its own, which
        its page draws. Each bar is when an attempt comes, from the earliest to the latest that the
        jitter may draw, if all before it have failed at once.
      </p>
      <Answered asked={asked}>
        {({ presets }) => (
          <div class="card flush folds">
            {presets.map(({ caution, name, outline, source }) => (
              <details key={name} class="policy" open={name === "default"}>
                <summary>
                  <b>{name}</b>{" "}
                  <span class="small">
                    {outline.maxAttempts} attempts in{" "}
                    {lastingExactly(spanMs(outline.waits.at(-1)?.latest ?? "0 millis"))}
                  </span>
                </summary>
                <p class="small">{source}</p>
                {caution !== undefined && <p class="noted">▲ It {caution}.</p>}
                <Schedule of={outline} />
              </details>
            ))}
          </div>
        )}
      </Answered>
      <Command text="petrel presets" request={curlCommand(`/v1/tenants/${tenant}/retry-presets`)} />
    </>
  )
}
