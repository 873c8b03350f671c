import type { RouterContext } from '@koa/router';
import type Koa from 'koa';
import type { Endpoint } from './endpoint.js';
import type { Answer } from './presenter.js';

/** What is known of a request before its endpoint is asked, and what becomes of it. */
export interface Arrival {
  readonly path: string;
  readonly search: string;
  readonly requestId: string;
  readonly clientAddress: string;
  endpoint?: Endpoint;
  /** Once it is known. */
  caller?: string;
  answer?: Answer;
}

export type ArrivalContext = RouterContext<Koa.DefaultState & { arrival?: Arrival }>;
