import { isObject } from '../../lib/json.js';
import type { ChatBody, ChatMessage } from '../completion/completion.js';
import { adapterOf } from '../providers/adapters.js';
import { beginOfTurn } from '../providers/shared/left-out.js';
import type { Providers } from '../completion/provider-names.js';
import type { Attempt, Route } from './route.js';
import { UnsupportedError } from './supported-request.js';

/**
 * Returns the attempts that can answer a request: with as many answers as requested, and models that read its
 * images first. Models that do not read images answer without them.
 * @throws UnsupportedError if several answers are requested and no attempt supports that.
 */
export function ableRoute(route: Route, request: ChatBody, providers: Providers): Route {
  const able = withSeveralAnswers(route, request);
  if (!request.messages.slice(beginOfTurn(request.messages)).some(hasImage)) return able;
  const takesImages = ({ provider, model }: Attempt) => {
    const config = providers[provider];
    return config === undefined || adapterOf(provider).takesImages(config, model);
  };
  return [...able.filter(takesImages), ...able.filter((attempt) => !takesImages(attempt))];
}

function withSeveralAnswers(route: Route, { n }: ChatBody): Route {
  if (typeof n !== 'number' || n <= 1) return route;
  const able = route.filter(({ provider }) => adapterOf(provider).takesSeveralAnswers);
  if (able.length > 0) return able;
  throw new UnsupportedError(
    'n',
    'n above 1 is not supported by this model: send several requests',
  );
}

const hasImage = ({ content }: ChatMessage): boolean =>
  Array.isArray(content) && content.some((part) => isObject(part) && part.type === 'image_url');
