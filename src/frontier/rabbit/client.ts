/** The client library of RabbitMQ, which only projects that use RabbitMQ install. */
import { optionalPackage } from '../../core/optional-package.ts'

export const rabbit = await optionalPackage('RabbitMQ needs', 'rabbitmq-client', () => import('rabbitmq-client'))
