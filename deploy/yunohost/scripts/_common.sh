#!/bin/bash

# Runs a command of Earmark as its user, with the settings of the service.
earmark() {
    ynh_exec_as_app "$install_dir/earmark" "$@" --env-file "$install_dir/earmark.env"
}

# Writes what depends on the domain, the path or the version.
configure() {
    # Without the slash of a whole domain.
    base_path="${path%/}"
    ynh_config_add --template="earmark.env" --destination="$install_dir/earmark.env"
    chown "root:$app" "$install_dir/earmark.env"
    chmod 640 "$install_dir/earmark.env"
    ynh_config_add_nginx
    ynh_config_add_systemd
}

# The program belongs to root; its user only reads it.
install_program() {
    ynh_setup_source --dest_dir="$install_dir" --full_replace
    chown -R "root:$app" "$install_dir"
    chmod -R u=rwX,g=rX,o= "$install_dir"
}

start() {
    ynh_systemctl --service="$app" --action="start" --log_path="systemd" --wait_until="listening"
}
