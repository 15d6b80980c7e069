// Drives libmygpo-qt: reads `[method, arguments]` per line and writes what the library has read, like drive-mygpoclient.py.

#include <ApiRequest.h>
#include <Config.h>

#include <QCoreApplication>
#include <QEventLoop>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QNetworkAccessManager>
#include <cstdio>
#include <iostream>
#include <string>

using namespace mygpo;

// Whether the library has read the response without an error.
template <typename Result> bool succeeds(const Result &result) {
    QEventLoop loop;
    bool isRead = false;
    QObject::connect(result.data(), &Result::value_type::finished, [&] { isRead = true; loop.quit(); });
    QObject::connect(result.data(), &Result::value_type::parseError, &loop, &QEventLoop::quit);
    QObject::connect(result.data(), &Result::value_type::requestError, &loop, &QEventLoop::quit);
    loop.exec();
    return isRead;
}

static QByteArray bodyOf(QNetworkReply *reply) {
    QEventLoop loop;
    QObject::connect(reply, &QNetworkReply::finished, &loop, &QEventLoop::quit);
    loop.exec();
    return reply->error() == QNetworkReply::NoError ? reply->readAll() : QByteArray("failed");
}

static QList<QUrl> urlsOf(const QJsonValue &value) {
    QList<QUrl> urls;
    for (const auto &url : value.toArray()) urls << QUrl(url.toString());
    return urls;
}

static QJsonValue uploaded(const AddRemoveResultPtr &result) {
    if (!succeeds(result)) return QJsonValue();
    QJsonArray pairs;
    for (const auto &pair : result->updateUrlsList())
        pairs << QJsonArray{pair.first.toString(), pair.second.toString()};
    return QJsonObject{{"timestamp", double(result->timestamp())}, {"update_urls", pairs}};
}

static QJsonValue actionsOf(const EpisodeActionListPtr &result) {
    if (!succeeds(result)) return QJsonValue();
    QJsonArray actions;
    for (const auto &action : result->list())
        actions << QJsonObject{{"podcast", action->podcastUrl().toString()},
                               {"episode", action->episodeUrl().toString()},
                               {"action", int(action->action())},
                               {"position", double(action->position())}};
    return QJsonObject{{"timestamp", double(result->timestamp())}, {"actions", actions}};
}

static QJsonValue devicesOf(const DeviceListPtr &result) {
    if (!succeeds(result)) return QJsonValue();
    QJsonArray devices;
    for (const auto &device : result->devicesList())
        devices << QJsonObject{{"id", device->id()},
                               {"caption", device->caption()},
                               {"subscriptions", double(device->subscriptions())}};
    return devices;
}

static QJsonValue groupsOf(const DeviceSyncResultPtr &result) {
    if (!succeeds(result)) return QJsonValue();
    QJsonArray groups;
    for (const auto &group : result->synchronizedList()) groups << QJsonArray::fromStringList(group);
    return groups;
}

int main(int count, char **arguments) {
    QCoreApplication application(count, arguments);
    const QString user = arguments[1];
    Config::instance()->setMygpoBaseUrl(QUrl(arguments[3]));
    QNetworkAccessManager network;
    ApiRequest api(user, arguments[2], &network);

    for (std::string line; std::getline(std::cin, line);) {
        const auto request = QJsonDocument::fromJson(QByteArray::fromStdString(line)).array();
        const auto method = request[0].toString();
        const auto given = request[1].toArray();
        QJsonValue value;
        if (method == "renameDevice")
            value = QString(bodyOf(api.renameDevice(user, given[0].toString(), given[1].toString(), Device::LAPTOP)));
        if (method == "listDevices") value = devicesOf(api.listDevices(user));
        if (method == "changeFeeds")
            value = uploaded(api.addRemoveSubscriptions(user, given[0].toString(), urlsOf(given[1]), urlsOf(given[2])));
        if (method == "list") value = QString(bodyOf(api.downloadSubscriptionsJson(user, given[0].toString())));
        if (method == "play") {
            const auto play = new EpisodeAction(QUrl(given[0].toString()), QUrl(given[1].toString()), "amarok",
                                                EpisodeAction::Play, qulonglong(given[2].toDouble()), 0,
                                                qulonglong(given[3].toDouble()), 600);
            value = uploaded(api.uploadEpisodeActions(user, {EpisodeActionPtr(play)}));
        }
        if (method == "actionsSince")
            value = actionsOf(api.episodeActionsByTimestamp(user, qulonglong(given[0].toDouble())));
        if (method == "groups") value = groupsOf(api.deviceSynchronizationStatus(user));
        std::puts(QJsonDocument(QJsonObject{{"value", value}}).toJson(QJsonDocument::Compact).constData());
        std::fflush(stdout);
    }
}
