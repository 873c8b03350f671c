/** Reports whether a path names a user; only that user and the operator have access to such a path. */
export const namesUser = (path: string): boolean => path.split('/').includes(':userId');
