import type { Method } from './endpoint.js';

interface Route<T> {
  readonly template: string;
  readonly segments: readonly string[];
  readonly parameters: number;
  readonly byMethod: Map<string, T>;
}

/** Where a path leads: what each method does there, and the parameters in the path, still encoded. */
export interface Match<T> {
  readonly template: string;
  readonly params: Readonly<Record<string, string>>;
  readonly byMethod: ReadonlyMap<string, T>;
}

const NO_PARAMS: Readonly<Record<string, string>> = {};

/**
 * Finds what a path leads to. Paths match exactly, segment by segment: what a limit sees is what a
 * handler gets, so no second spelling of a path escapes its limits. Literal segments win over
 * parameters (`/api/agents/clone` over `/api/agents/:id`).
 */
export class Routes<T> {
  private readonly literal = new Map<string, Route<T>>();
  private readonly withParameters = new Map<number, Route<T>[]>();

  /** @throws Error when the same method and path are declared twice. */
  add(method: Method, template: string, target: T): void {
    const route = this.routeOf(template);
    if (route.byMethod.has(method)) throw new Error(`${method} ${template} is declared twice`);
    route.byMethod.set(method, target);
  }

  match(path: string): Match<T> | undefined {
    const literal = this.literal.get(path);
    if (literal !== undefined) return { ...literal, params: NO_PARAMS };

    const segments = path.split('/');
    for (const route of this.withParameters.get(segments.length) ?? []) {
      const params = paramsOf(route, segments);
      if (params !== undefined) {
        return { template: route.template, byMethod: route.byMethod, params };
      }
    }
    return undefined;
  }

  private routeOf(template: string): Route<T> {
    const segments = template.split('/');
    const parameters = segments.filter(isParameter).length;
    const peers = this.withParameters.get(segments.length) ?? [];
    const found = this.literal.get(template) ?? peers.find((route) => route.template === template);
    if (found !== undefined) return found;

    const route: Route<T> = { template, segments, parameters, byMethod: new Map() };
    if (parameters === 0) {
      this.literal.set(template, route);
    } else {
      peers.push(route);
      peers.sort((a, b) => a.parameters - b.parameters);
      this.withParameters.set(segments.length, peers);
    }
    return route;
  }
}

export const isParameter = (segment: string): boolean => segment.startsWith(':');

function paramsOf<T>(
  route: Route<T>,
  segments: readonly string[],
): Record<string, string> | undefined {
  const params: Record<string, string> = {};
  for (const [index, expected] of route.segments.entries()) {
    const segment = segments[index] ?? '';
    if (isParameter(expected)) {
      if (segment === '') return undefined;
      params[expected.slice(1)] = segment;
    } else if (segment !== expected) {
      return undefined;
    }
  }
  return params;
}
