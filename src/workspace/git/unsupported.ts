import { BadRequestError } from '../../lib/errors.js';

/** 400: a repository with a layout that is not supported. */
export class UnsupportedRepositoryError extends BadRequestError {
  override readonly name = 'UnsupportedRepositoryError';

  constructor(why: string) {
    super(`The repository is not supported: ${why}`);
  }
}
