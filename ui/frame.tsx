import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { isTyping, isUtc, switchTheme, switchTimes, theme } from "./parts.tsx"
import { address, filter, go, path, query } from "./router.ts"
import { logOut, may, session } from "./session.ts"

/** The tenant that pages are about: the session's own, or the one that an operator has chosen. */
export const shownTenant = (): string => {
  const own = session.value?.tenant ?? "*"
  return own === "*" ? (query.value.tenant ?? "*") : own
}

/** The endpoint that lists are narrowed to. */
export const shownEndpoint = (): string | undefined => {
  const own = session.value?.endpoint
  return own ?? query.value.endpoint
}

interface PageLink {
  readonly name: string
  readonly title: string
  readonly isFor: () => boolean
}

const ofTenant = () => session.value?.endpoint === undefined
const pages: ReadonlyArray<PageLink> = [
  { name: "", title: "Overview", isFor: () => ofTenant() },
  { name: "deliveries", title: "Deliveries", isFor: () => may("deliveries:read") },
  { name: "endpoints", title: "Endpoints", isFor: () => may("endpoints:read") },
  { name: "dead-letters", title: "Dead letters", isFor: () => may("dead:read") },
  { name: "live", title: "Live", isFor: () => may("deliveries:read") },
  { name: "alerts", title: "Alerts", isFor: () => ofTenant() && may("deliveries:read") },
  {
    name: "tokens",
    title: "Tokens",
    isFor: () => ofTenant() && may("tokens:write")
  },
  { name: "audit", title: "Audit", isFor: () => may("operator") },
  { name: "system", title: "System", isFor: () => may("operator") }
]

const Nav = () => {
  const [current = ""] = path.value
  const { brand, endpoint, name, tenant } = session.value ?? {}
  // An event has no list of its own: it is found by its deliveries.
  const shown = current === "events" ? "deliveries" : current
  const all = pages.filter(({ isFor }) => isFor())
  const chosen = query.value.tenant
  return (
    <nav aria-label="Pages">
      <b>
        {brand?.logo !== undefined && <img src={brand.logo} alt="" height={20} />}
        {brand?.name ?? "Petrel"}
      </b>
      {all.map((page) => (
        <a
          key={page.name}
          href={address(page.name === "" ? [] : [page.name], { tenant: chosen })}
          aria-current={page.name === shown ? "page" : undefined}
        >
          {page.title}
        </a>
      ))}
      <div class="foot">
        {tenant === "*"
          ? "all tenants"
          : `${tenant}${endpoint === undefined ? "" : `/${endpoint}`}`}
        {name !== undefined && (
          <>
            <br />
            {name}
          </>
        )}
        <br />
        <button type="button" class="plain" onClick={() => void logOut()}>
          Log out
        </button>
      </div>
    </nav>
  )
}

/** Finds a delivery or an event by its id, or an endpoint as `tenant/endpoint`. */
const find = (text: string): void => {
  const wanted = text.trim()
  const own = shownTenant()
  const [tenant = "", id = "", ...more] = wanted.split("/")
  if (wanted === "") return
  if (id !== "" && more.length === 0) go(address(["endpoints", tenant, id]))
  else
    go(
      address(["deliveries"], {
        tenant: own === "*" ? undefined : query.value.tenant,
        event: wanted
      })
    )
}

const keys = [
  ["/", "search"],
  ["j, k", "next and previous row"],
  ["Enter", "open the row"],
  ["g d, g e, g l", "deliveries, endpoints, live"],
  ["?", "these keys"],
  ["Esc", "close"]
] as const

const goKeys: Readonly<Record<string, string>> = { d: "deliveries", e: "endpoints", l: "live" }

const Keys = ({ close }: { readonly close: () => void }) => {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} onClose={close} aria-label="Keys">
      <h2>Keys</h2>
      <dl class="facts">
        {keys.map(([key, what]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  )
}

const Header = () => {
  const search = useRef<HTMLInputElement>(null)
  const [isHelped, help] = useState(false)
  useEffect(() => {
    let before = ""
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape" && event.target === search.current) search.current?.blur()
      if (isTyping(event)) return
      if (event.key === "/") {
        event.preventDefault()
        search.current?.focus()
      }
      if (event.key === "?") help(true)
      const to = before === "g" ? goKeys[event.key] : undefined
      if (to !== undefined) go(address([to], { tenant: query.value.tenant }))
      before = event.key
    }
    addEventListener("keydown", onKey)
    return () => removeEventListener("keydown", onKey)
  }, [])
  const isOperator = session.value?.tenant === "*"
  return (
    <header>
      <search>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            find(search.current?.value ?? "")
          }}
        >
          <input
            ref={search}
            type="search"
            aria-label="Find an event or delivery by its id, or an endpoint"
            placeholder="Find by event id, delivery id or tenant/endpoint"
          />
          <kbd>/</kbd>
        </form>
      </search>
      {isOperator && (
        <label class="chip">
          tenant{" "}
          <input
            class="short"
            value={query.value.tenant ?? ""}
            placeholder="all"
            onChange={(event) =>
              filter({ tenant: event.currentTarget.value.trim() || undefined, cursor: undefined })
            }
          />
        </label>
      )}
      <button type="button" onClick={switchTimes} title="How times are shown">
        {isUtc.value ? "UTC" : "local time"}
      </button>
      <button type="button" onClick={switchTheme} title="Light, dark, or as the system">
        {theme.value === "system" ? "theme: system" : theme.value}
      </button>
      <button type="button" onClick={() => help(true)} aria-label="Keys">
        ?
      </button>
      {isHelped && <Keys close={() => help(false)} />}
    </header>
  )
}

/** What surrounds each page. */
export const Frame = ({ children }: { readonly children: ComponentChildren }) => (
  <div class="frame">
    <Nav />
    <div>
      <Header />
      <main>{children}</main>
    </div>
  </div>
)
